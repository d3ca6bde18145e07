/** The members of an OpenAPI 3.1 document that the comparison reads. */
export interface Document {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly security?: readonly SecurityRequirement[];
}

export interface Operation {
  readonly operationId: string;
  readonly deprecated?: boolean;
  readonly 'x-stability'?: string;
  /** RFC 3339, as is x-sunset, the instant of the removal. */
  readonly 'x-deprecated-since'?: string;
  readonly 'x-sunset'?: string;
  readonly security?: readonly SecurityRequirement[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Body & { readonly required?: boolean };
  readonly responses: Readonly<Record<string, Response>>;
}

/** The scopes by the name of the security scheme. */
type SecurityRequirement = Readonly<Record<string, readonly string[]>>;

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly style?: string;
  readonly explode?: boolean;
  readonly allowReserved?: boolean;
  readonly required?: boolean;
  readonly schema: Schema;
}

export interface Body {
  readonly content?: Readonly<Record<string, Media>>;
}

interface Media {
  readonly schema: Schema;
  readonly examples?: Readonly<Record<string, { readonly value?: { readonly code?: string } }>>;
}

export interface Response extends Body {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: Schema }>>;
}

/** JSON Schema 2020-12 */
export interface Schema extends Readonly<Record<string, unknown>> {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
}

/** An operation with the document that its references lead into. */
export interface Located {
  readonly document: Document;
  readonly operation: Operation;
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options', 'trace'];

/** The operations by method and path, the path of the server (/v1) included. */
export function locateOperations(document: Document): Map<string, Located> {
  const base = new URL(document.servers[0]?.url ?? '/', 'http://localhost').pathname;
  return new Map(
    Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item)
        .filter(([method]) => METHODS.includes(method))
        .map(([method, operation]) => [`${method.toUpperCase()} ${base}${path}`, { document, operation }]),
    ),
  );
}

/**
 * What a reference leads to, with the members beside the `$ref` on top; anything else as it is.
 *
 * @throws TypeError when it leads nowhere
 */
export function resolve<Value extends object>(value: Value, document: Document): Value {
  const { $ref, ...rest } = value as Value & { readonly $ref?: string };
  if ($ref === undefined) return value;
  const [, , kind = '', name = ''] = $ref.split('/');
  const target = document.components[kind]?.[name];
  if (target === undefined) throw new TypeError(`${$ref} is not in the document`);
  return { ...resolve(target, document), ...rest } as Value;
}

/** A value and all that it refers to, without texts for readers: two are alike if nothing else differs. */
export function toComparableText(value: unknown, document: Document): string {
  const referenced = new Map<string, string>();
  const toText = (each: unknown): string =>
    JSON.stringify(each, (key, member) => {
      if (key === '$ref' && !referenced.has(member)) {
        referenced.set(member, '');
        referenced.set(member, toText(resolve({ $ref: member }, document)));
      }
      return typeof member === 'string' && ['description', 'summary'].includes(key) ? undefined : member;
    });
  return [toText(value), ...Array.from(referenced).flat()].join('\n');
}
