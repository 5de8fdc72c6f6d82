import { change, get, type Schemas } from "../api/client";
import { groupBy } from "../model/groups";
import { ActionLink, Actions } from "../ui/actions";
import { useData } from "../ui/data";
import { TextFilter } from "../ui/filters";
import { Card, Data, Facts, Head, Row, Time } from "../ui/parts";
import { Link, navigate, query } from "../ui/router";
import { type Column, Table } from "../ui/table";
import { Definition } from "../views/definition";
import { DEPLOYMENTS } from "./runs";

type Summary = Schemas["ConfigSummary"];
type Config = Schemas["SoftwareConfig"];

interface Named {
  name: string;
  newest: Summary;
  versions: number;
}

const COLUMNS: Column<Named>[] = [
  { title: "Name", cell: (row) => <Link to={["configs", row.newest.id]}>{row.name}</Link>, sort: (row) => row.name },
  { title: "Group", cell: (row) => row.newest.group ?? "", sort: (row) => row.newest.group ?? "" },
  { title: "Versions", cell: (row) => row.versions, sort: (row) => row.versions, isNumber: true },
  { title: "Newest", cell: (row) => <Time at={row.newest.creation_time} />, sort: (row) => row.newest.creation_time },
];

/** The configs of the project; those of the same name are versions of one. */
export function ConfigsPage() {
  const text = (query.value.get("name") ?? "").toLowerCase();
  const loaded = useData("configs", async (signal) => {
    const { software_configs } = await get("/v1/{project}/software_configs", {}, { derived: false }, signal);
    return [...groupBy(software_configs, (config) => config.name || config.id)].map(([name, versions]): Named => {
      return { name, newest: versions[0]!, versions: versions.length };
    });
  }, 30);
  return (
    <>
      <Head title="Configs" />
      <p class="lead">Scripts, playbooks and files that stacks, triggers and schedules run on servers.</p>
      <div class="filters">
        <TextFilter name="name" label="Name" hint="backup" />
      </div>
      <Data of={loaded}>
        {(rows) => (
          <Table
            label="Configs"
            rows={rows.filter((row) => row.name.toLowerCase().includes(text))}
            columns={COLUMNS}
            keyOf={(row) => row.newest.id}
            empty={
              rows.length > 0 ? (
                "No config has such a name."
              ) : (
                <>
                  There are no configs yet. <code>stoker config create</code> and stacks create them; the{" "}
                  <Link to={["catalog"]}>catalog</Link> has some to begin with.
                </>
              )
            }
          />
        )}
      </Data>
    </>
  );
}

/** One config: what it runs, with which inputs, its other versions, and who runs it. */
export function ConfigPage({ names: [id = ""] }: { names: string[] }) {
  const names = { config_id: id };
  const loaded = useData(`config ${id}`, async (signal) => {
    const [{ software_config: config }, { software_configs: all }] = await Promise.all([
      get("/v1/{project}/software_configs/{config_id}", names, {}, signal),
      get("/v1/{project}/software_configs", {}, { derived: false }, signal),
    ]);
    const listed = { config: config.name || config.id, names: true };
    const { software_deployments: deployments } = await get("/v1/{project}/software_deployments", {}, listed, signal);
    return { config, deployments, versions: all.filter((one) => one.name && one.name === config.name) };
  }, 30);
  const remove = async () => {
    await change("DELETE", "/v1/{project}/software_configs/{config_id}", names);
    navigate(["configs"]);
  };
  const question = "The config is deleted, unless a deployment or a schedule uses it.";
  return (
    <>
      <Head title={loaded.data?.config.name || id} kind="Config">
        <ActionLink to={["run"]} with={{ what: "config", config: id }}>
          Run
        </ActionLink>
        {loaded.data && <Actions of={[{ label: "Delete", question, isDangerous: true, run: remove }]} onDone={() => {}} />}
      </Head>
      <Data of={loaded}>
        {({ config, deployments, versions }) => (
          <>
            <Facts
              of={[
                ["Group", config.group],
                ["Created", <Time at={config.creation_time} />],
                ["Id", <span class="mono">{config.id}</span>],
              ]}
            />
            <Definition of={config} text={typeof config.config === "string" ? config.config : JSON.stringify(config.config, null, 2)} what="config">
              {versions.length > 1 && <Versions of={versions} current={config} />}
            </Definition>
            <Card title="Deployments" aside={<span>of all versions</span>}>
              <Table label="Deployments" rows={deployments} columns={DEPLOYMENTS} keyOf={(row) => row.id} empty="No server runs this config." />
            </Card>
          </>
        )}
      </Data>
    </>
  );
}

function Versions({ of: versions, current }: { of: readonly Summary[]; current: Config }) {
  return (
    <Card title="Versions">
      <ul class="rows">
        {versions.map((version) => (
          <Row
            key={version.id}
            name={version.id === current.id ? "this one" : <Link to={["configs", version.id]}>{version.id.slice(0, 8)}</Link>}
            time={version.creation_time}
          />
        ))}
      </ul>
    </Card>
  );
}
