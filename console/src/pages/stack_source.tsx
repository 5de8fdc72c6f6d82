import { get } from "../api/client";
import { toYaml } from "../model/yaml";
import { useData } from "../ui/data";
import { Card, Data } from "../ui/parts";
import { Editor } from "../views/editor";

/** The template and the environment of a stack, with line numbers. The server has redacted secrets. */
export function SourcePart({ names: [stack_name = "", stack_id = ""] }: { names: string[] }) {
  const path = { stack_name, stack_id };
  const loaded = useData(`source ${stack_id}`, async (signal) => {
    const [template, environment] = await Promise.all([
      get("/v1/{project}/stacks/{stack_name}/{stack_id}/template", path, {}, signal),
      get("/v1/{project}/stacks/{stack_name}/{stack_id}/environment", path, {}, signal),
    ]);
    return { template: toYaml(template), environment: toYaml(environment) };
  }, 30);
  return (
    <Data of={loaded}>
      {({ template, environment }) => (
        <>
          <Card title="Template">
            <Editor label="Template" text={template} />
          </Card>
          <Card title="Environment">
            <Editor label="Environment" text={environment} />
          </Card>
        </>
      )}
    </Data>
  );
}
