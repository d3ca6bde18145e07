/** A JSON Schema of the OpenAPI document, with the keywords that say something of a type or are shown */
export interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly default?: unknown;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly not?: Schema;
  readonly properties?: Schemas;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly propertyNames?: Schema;
  readonly items?: boolean | Schema;
  readonly prefixItems?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
}

export type Schemas = Readonly<Record<string, Schema>>;

interface Media {
  readonly 'application/json': { readonly schema: Schema };
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

/** An operation as the document describes it */
export interface Described {
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Media };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Media }>>;
  readonly 'x-stability': string;
  readonly 'x-deprecated-since'?: string;
  readonly 'x-sunset'?: string;
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: { readonly schemas: Schemas };
}

/** The name of the schema that a reference leads to */
export function refName(schema: Schema | undefined): string {
  return schema?.$ref?.split('/').at(-1) ?? '';
}

/** A value as TypeScript writes it */
export function quote(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  // A bar between spaces separates the members of a union, which may be broken there.
  const inner = JSON.stringify(value).slice(1, -1).replaceAll("'", "\\'").replaceAll(' | ', ' \\x7c ');
  return `'${inner}'`;
}

export function capitalize(name: string): string {
  return name.slice(0, 1).toUpperCase() + name.slice(1);
}
