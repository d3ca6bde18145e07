/** What is read of an OpenAPI document. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly examples?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}
interface Parameter {
  readonly in: string;
  readonly name: string;
  readonly required?: boolean;
  readonly schema: Schema;
}
interface DocumentedOperation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: Schema; readonly example?: Members }>>;
  };
}
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export type Members = Readonly<Record<string, unknown>>;

/** A member of an input, and valid values for it: all that an enum has */
export interface Member {
  readonly name: string;
  readonly values: readonly unknown[];
  readonly isRequired: boolean;
}

/** An operation as its document describes it. */
export interface Operation {
  readonly name: string;
  /** In upper case */
  readonly method: string;
  /** Relative to the version: /pets/{petId} */
  readonly path: string;
  /** The members of the query */
  readonly query: readonly Member[];
  readonly body: { readonly example: Members; readonly members: readonly Member[] } | undefined;
  readonly takesIdempotencyKey: boolean;
}

/** Items are changed after they are read and others are added. */
const ORDER = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** The operations of a document: first those that read, then those that add, change and delete. */
export function readOperations({ paths, components }: Document): Operation[] {
  const resolve = ({ $ref, ...schema }: Schema): Schema => ({
    ...components.schemas[$ref?.split('/').at(-1) ?? ''],
    ...schema,
  });
  const listValues = (schema: Schema): readonly unknown[] => {
    const { type, enum: values, anyOf, examples } = resolve(schema);
    if (values !== undefined) return values;
    if (anyOf !== undefined) return anyOf.flatMap(listValues);
    const [first] = [type].flat();
    return first === 'boolean'
      ? [true, false]
      : first === 'null'
        ? [null]
        : [examples?.[0] ?? (first === 'string' ? 'x' : 1)];
  };
  const readBody = ({ requestBody }: DocumentedOperation): Operation['body'] => {
    const content = requestBody?.content['application/json'];
    if (content === undefined) return undefined;
    const { properties = {}, required = [], examples = [] } = resolve(content.schema);
    const members = Object.entries(properties).map(([name, schema]) => ({
      name,
      values: listValues(schema),
      isRequired: required.includes(name),
    }));
    return { example: content.example ?? (examples[0] as Members) ?? {}, members };
  };
  return Object.entries(paths)
    .flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]): Operation => {
        const { operationId, parameters = [] } = operation;
        return {
          name: operationId,
          method: method.toUpperCase(),
          path,
          query: parameters
            .filter((parameter) => parameter.in === 'query')
            .map(({ name, required = false, schema }) => ({
              name,
              values: listValues(schema),
              isRequired: required,
            })),
          body: readBody(operation),
          takesIdempotencyKey: parameters.some(({ name }) => /^idempotency-key$/i.test(name)),
        };
      }),
    )
    .sort((a, b) => ORDER.indexOf(a.method) - ORDER.indexOf(b.method));
}
