import type { describeService } from '@animal-store/platform/development';
import type { Shape } from './printer.js';
import { capitalize, type Described, type Document, type Parameter, refName, type Schema } from './schema.js';

export type Service = ReturnType<typeof describeService>;
type Operation = Service['operations'][number];
type Input = Operation['input'] & { readonly shape?: Shape; unwrap?(): Input };

/** An operation with what the document says of it, and what the client takes as its input */
export interface ClientOperation extends Operation {
  readonly described: Described;
  /** The members of the input that come from the path and the query */
  readonly own: readonly Parameter[];
  readonly body: Schema | undefined;
  /** Whether the body is all that the input has */
  readonly isBody: boolean;
  /** The schema of the input: its name in the document, or the name of its type */
  readonly inputName: string;
  readonly shape: Shape;
  /** Whether it may be called without an input */
  readonly mayLackInput: boolean;
}

export function describeOperations(
  { paths }: Document,
  operations: Service['operations'],
): ClientOperation[] {
  return operations.map((operation) => {
    const { name, path, method, input } = operation;
    const described = paths[path]?.[method.toLowerCase()] as Described;
    const { requestBody, parameters = [] } = described;
    const own = parameters.filter((parameter) => parameter.in === 'path' || parameter.in === 'query');
    const body = requestBody?.content['application/json'].schema;
    const isBody = body !== undefined && own.length === 0;
    return {
      ...operation,
      described,
      own,
      body,
      isBody,
      inputName: isBody ? refName(body) : `${capitalize(name)}Input`,
      shape: readShape(input as Input | undefined),
      mayLackInput: input === undefined || input.safeParse(undefined).success,
    };
  });
}

/** An input is an object, which may be optional, or have a default. */
function readShape(input: Input | undefined): Shape {
  return input?.shape ?? (input?.unwrap === undefined ? {} : readShape(input.unwrap()));
}

/** An input that is more than a body: one object with the parameters and the members of the body. */
export function toInputSchema({ name, own }: ClientOperation, body: Schema | undefined): Schema {
  const members = own.map(({ name: member, description, schema }) => [
    member,
    { ...schema, ...(description !== undefined && { description }) },
  ]);
  const required = own.filter((parameter) => parameter.required).map((parameter) => parameter.name);
  return {
    type: 'object',
    description: `The input of ${name}`,
    properties: { ...Object.fromEntries(members), ...body?.properties },
    required: [...required, ...(body?.required ?? [])],
  };
}
