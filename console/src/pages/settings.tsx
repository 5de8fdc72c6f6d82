import { get, type Schemas } from "../api/client";
import { session } from "../api/session";
import { groupBy } from "../model/groups";
import { useData } from "../ui/data";
import { TextFilter } from "../ui/filters";
import { Card, Data, Empty, Head } from "../ui/parts";
import { query } from "../ui/router";

type Setting = Schemas["Setting"];

/** The settings of the service with their sources; nobody changes them here. */
export function SettingsPage() {
  return (
    <>
      <Head title="Settings" />
      {session.is_admin ? <Settings /> : <Empty>Only administrators of the site see its settings.</Empty>}
    </>
  );
}

function Settings() {
  const text = (query.value.get("name") ?? "").toLowerCase();
  const loaded = useData("settings", async (signal) => (await get("/v1/{project}/settings", {}, {}, signal)).settings, 0);
  return (
    <>
      <p class="lead">
        As the process that answered has read them. Change them with flags, the environment or the settings file, and
        restart Stoker.
      </p>
      <div class="filters">
        <TextFilter name="name" label="Name or help" hint="heartbeat" />
      </div>
      <Data of={loaded}>
        {(all) => {
          const shown = all.filter((setting) => `${setting.name} ${setting.help}`.toLowerCase().includes(text));
          if (shown.length === 0) return <Empty>No setting matches.</Empty>;
          return (
            <>
              {[...groupBy(shown, (setting) => setting.group)].map(([group, settings]) => (
                <Card key={group} title={group}>
                  <dl class="settings">
                    {settings.map((setting) => (
                      <Row key={setting.name} of={setting} />
                    ))}
                  </dl>
                </Card>
              ))}
            </>
          );
        }}
      </Data>
    </>
  );
}

function Row({ of: setting }: { of: Setting }) {
  return (
    <div>
      <dt class="mono">{setting.name}</dt>
      <dd>
        <span class={`mono${setting.source ? " chosen" : ""}`}>{setting.value || <span class="quiet">not set</span>}</span>
        {setting.source ? (
          <span class="quiet">
            {" "}
            from {setting.source}; the default is {setting.default || "none"}
          </span>
        ) : (
          <span class="quiet"> by default</span>
        )}
        <p class="quiet">{setting.help}</p>
      </dd>
    </div>
  );
}
