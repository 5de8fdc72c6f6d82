import type { Schemas } from "../api/client";
import { groupBy } from "../model/groups";
import { useGet } from "../ui/data";
import { TextFilter } from "../ui/filters";
import { Card, Data, Empty, Head } from "../ui/parts";
import { query } from "../ui/router";

type Setting = Schemas["Setting"];

/** The settings of the service with their sources; nobody changes them here. */
export function SettingsPage() {
  const text = (query.value.get("name") ?? "").toLowerCase();
  const loaded = useGet("/v1/{project}/settings", {}, {}, 0);
  return (
    <>
      <Head title="Settings" />
      <p class="lead">
        The settings that the process has read at its start. To change them, use flags, the environment or the settings file,
        and restart Stoker.
      </p>
      <div class="filters">
        <TextFilter name="name" label="Name or help" hint="heartbeat" />
      </div>
      <Data of={loaded}>
        {({ settings: all }) => {
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
