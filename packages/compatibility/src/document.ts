/** The members of an OpenAPI 3 document that the comparison reads. All but `openapi` may be left out. */
export interface Document {
  readonly openapi: string;
  readonly servers?: readonly Server[];
  readonly paths?: Readonly<Record<string, PathItem>>;
  readonly components?: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly security?: readonly SecurityRequirement[];
}

interface Server {
  readonly url: string;
  readonly variables?: Readonly<Record<string, { readonly default?: string }>>;
}

/** The operations of a path by their method, in lower case, and what they share. */
interface PathItem {
  readonly $ref?: string;
  readonly parameters?: readonly Parameter[];
  readonly [method: string]: unknown;
}

export interface Operation {
  readonly operationId?: string;
  readonly deprecated?: boolean;
  readonly 'x-stability'?: string;
  /** RFC 3339, as is x-sunset, the instant of the removal. */
  readonly 'x-deprecated-since'?: string;
  readonly 'x-sunset'?: string;
  readonly security?: readonly SecurityRequirement[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Body & { readonly required?: boolean };
  readonly responses?: Readonly<Record<string, Response>>;
}

/** The scopes by the name of the security scheme. */
export type SecurityRequirement = Readonly<Record<string, readonly string[]>>;

export interface Parameter extends Described {
  readonly name: string;
  readonly in: string;
  readonly style?: string;
  readonly explode?: boolean;
  readonly allowReserved?: boolean;
}

/** A parameter or a header: its schema is its own, or that of its only media type. */
export interface Described extends Body {
  readonly required?: boolean;
  readonly schema?: Schema;
}

export interface Body {
  readonly content?: Readonly<Record<string, Media>>;
}

interface Media {
  readonly schema?: Schema;
  readonly examples?: Readonly<Record<string, object>>;
}

export interface Response extends Body {
  readonly headers?: Readonly<Record<string, Described>>;
}

/** JSON Schema 2020-12, or the form that OpenAPI 3.0 has of it. */
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

/** The schema of a parameter or a header. */
export function schemaOf({ schema, content = {} }: Described): Schema {
  return schema ?? Object.values(content)[0]?.schema ?? {};
}
