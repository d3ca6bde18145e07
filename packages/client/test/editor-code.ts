import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './installed-package.js';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly default?: unknown;
}
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly deprecated?: boolean;
  readonly 'x-sunset'?: string;
  readonly parameters?: readonly {
    readonly in: string;
    readonly name: string;
    readonly description: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Media };
  readonly responses: Readonly<Record<string, { readonly content?: Media }>>;
}
interface Media {
  readonly 'application/json': { readonly schema: Schema };
}
interface Field {
  readonly name: string;
  readonly schema: Schema;
  /** Where the code mentions it */
  readonly position: number;
}

export const {
  paths,
  components,
}: { paths: Record<string, Record<string, Operation>>; components: Components } = JSON.parse(
  readFileSync(join(ROOT, 'docs/openapi.json'), 'utf8'),
);
interface Components {
  readonly schemas: Readonly<Record<string, Schema>>;
}

const MARK = '‸';
let text = `import { type ApiClientError, createClient } from '@animal-store/client';
const client = createClient({ baseUrl: '', apiKey: '' });
`;

/** Appends to the text. Resolves the marks in it to their positions. */
function write(line: string): number[] {
  const parts = line.split(MARK);
  const start = text.length;
  text += `${parts.join('')}\n`;
  return parts.slice(1).map((_part, index) => start + parts.slice(0, index + 1).join('').length);
}

/** What the document says of each operation, and where the code mentions it and its fields. */
export const operations = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => {
    const { operationId: name, parameters = [], requestBody, responses } = operation;
    const call = method === 'get' ? 'query' : 'mutate';
    const inputs: Record<string, Schema> = {
      ...Object.fromEntries(
        parameters
          .filter((parameter) => parameter.in === 'path' || parameter.in === 'query')
          .map(({ name: member, description, schema }) => [member, { ...schema, description }]),
      ),
      ...resolve(requestBody?.content['application/json'].schema).properties,
    };
    const names = Object.keys(inputs);
    const members = names.map((member) => `${MARK}${member}: null!`).join(', ');
    const input = names.length === 0 ? '' : `{ ${members} }`;
    const [result = 0, member = 0, ...inputPositions] = write(
      `const ${MARK}${name}Result = await client.${MARK}${name}.${call}(${input});`,
    );
    const [blank = 0] = names.length === 0 ? [] : write(`client.${name}.${call}({ ${MARK} });`);
    const [, success] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? [];
    const output = success?.content?.['application/json'].schema;
    return {
      name,
      path,
      method,
      operation,
      result,
      member,
      blank,
      output,
      inputs: names.map((each, index) => ({
        name: each,
        schema: inputs[each] ?? {},
        position: inputPositions[index] ?? 0,
      })),
      outputs: writeFields(output, `${name}Result`),
    };
  }),
);
export const [errorCode = 0] = write(`declare const failure: ApiClientError;\nfailure.${MARK}code;`);
export const [comparedCode = 0] = write(`failure.code === '${MARK}';`);
export const [rehearsedCode = 0] = write(`createClient({ baseUrl: '', apiKey: '', rehearse: '${MARK}' });`);

/** A program that mentions all that the document describes: each operation, and each member of its input and output. */
export const code = text;

/** The codes that the document knows; its schema also allows any other string, for those of later versions. */
export const errorCodes = (components.schemas.Error?.properties?.code?.anyOf ?? []).flatMap(
  ({ enum: known = [] }) => known,
);

export function resolve(schema: Schema = {}): Schema {
  return schema.$ref === undefined ? schema : { ...components.schemas[refName(schema)], ...schema };
}

export function refName({ $ref = '' }: Schema): string {
  return $ref.split('/').at(-1) ?? '';
}

/** Mentions every member of an object or of an array's objects, at any depth. */
function writeFields(schema: Schema | undefined, expression: string): Field[] {
  const { type, items, properties = {} } = resolve(schema);
  if (type === 'array') return writeFields(items, `${expression}[0]!`);
  return Object.entries(properties).flatMap(([name, member]) => {
    const [position = 0] = write(`${expression}.${MARK}${name};`);
    return [{ name, schema: member, position }, ...writeFields(member, `${expression}.${name}`)];
  });
}
