import { change, type Schemas } from "../api/client";
import { ActionLink, Actions } from "../ui/actions";
import { useGet } from "../ui/data";
import { TextFilter } from "../ui/filters";
import { Card, Data, Facts, Head, Value } from "../ui/parts";
import { Link, navigate, query } from "../ui/router";
import { type Column, Table } from "../ui/table";
import { Definition } from "../views/definition";

type Entry = Schemas["EntrySummary"];

const COLUMNS: Column<Entry>[] = [
  { title: "Name", cell: (entry) => <Link to={["catalog", entry.name, `${entry.version}`]}>{`${entry.name}/${entry.version}`}</Link>, sort: (entry) => `${entry.name}/${entry.version}` },
  { title: "Description", cell: (entry) => entry.description },
  { title: "From", cell: (entry) => entry.origin, sort: (entry) => entry.origin },
];

/** The entries of the catalog: typed configs, which templates name as catalog://nginx/1. */
export function CatalogPage() {
  const text = (query.value.get("name") ?? "").toLowerCase();
  const loaded = useGet("/v1/{project}/catalog", {}, {}, 0);
  return (
    <>
      <Head title="Catalog" />
      <p class="lead">Ready-made configs with typed inputs, to run or to use in templates. Stoker ships some; projects and the site add their own.</p>
      <div class="filters">
        <TextFilter name="name" label="Name or description" hint="nginx" />
      </div>
      <Data of={loaded}>
        {({ entries }) => (
          <Table
            label="Catalog"
            rows={entries.filter((entry) => `${entry.name} ${entry.description}`.toLowerCase().includes(text))}
            columns={COLUMNS}
            keyOf={(entry) => `${entry.name}/${entry.version}/${entry.origin}`}
            empty="No entry of the catalog matches."
          />
        )}
      </Data>
    </>
  );
}

/** One entry of the catalog: its inputs and outputs, an example, and its text. */
export function CatalogEntryPage({ names: [name = "", version = ""] }: { names: string[] }) {
  const names = { entry_name: name, number: version };
  const loaded = useGet("/v1/{project}/catalog/{entry_name}/{number}", names, {}, 0);
  const remove = async () => {
    await change("DELETE", "/v1/{project}/catalog/{entry_name}/{number}", names);
    navigate(["catalog"]);
  };
  const question = "The entry is deleted. Stacks that use it keep their copies.";
  return (
    <>
      <Head title={`${name}/${version}`} kind="Catalog entry">
        <ActionLink to={["run"]} with={{ what: "entry", entry: `${name}/${version}` }}>
          Run
        </ActionLink>
        {loaded.data?.entry.origin === "project" && <Actions of={[{ label: "Delete", question, isDangerous: true, run: remove }]} onDone={() => {}} />}
      </Head>
      <Data of={loaded}>
        {({ entry }) => (
          <>
            <p class="lead">{entry.description}</p>
            <Facts of={[["Group", entry.group], ["From", entry.origin], ["Actions", entry.actions.join(", ") || "all"]]} />
            <Definition of={entry} text={entry.text} what="entry">
              {Object.keys(entry.example).length > 0 && (
                <Card title="Example">
                  <Value of={entry.example} />
                </Card>
              )}
            </Definition>
          </>
        )}
      </Data>
    </>
  );
}
