import { capitalize } from './schema.js';

/** What the package exports beside a store's own types, and what these refer to */
export const TAKEN_NAMES: readonly string[] = [
  ...['ApiClientError', 'AppRouter', 'Client', 'ClientOptions', 'Clock', 'Error', 'ErrorCode', 'ErrorShape'],
  ...['FieldErrors', 'Inputs', 'LimitStatus', 'LimitWatch', 'Mutation', 'Operations', 'Outputs', 'Query'],
  ...['RootTypes', 'Scope', 'TRPCMutationProcedure', 'TRPCQueryProcedure', 'WindowStatus'],
];

/** Marks the names that this tool gives to schemas. Those of a document have none such. */
const OWN = '$';
export const [ERROR_CODE, SCOPE] = [`${OWN}ErrorCode`, `${OWN}Scope`];

/** The type of a schema, by the schema's name in the document, which may have dots and hyphens */
export function toTypeName(name: string): string {
  if (name.startsWith(OWN)) return name.slice(OWN.length);
  const words = name.split(/\W+/).map(capitalize);
  const type = words.join('').replace(/^(?=\d)/, '_');
  return TAKEN_NAMES.includes(type) ? `${type}Body` : type;
}
