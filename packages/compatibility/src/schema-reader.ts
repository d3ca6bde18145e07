import type { Document, Schema } from './document.js';
import { nameOf, resolve } from './references.js';
import { intersect, isAnnotation, limitToType, listTypes, simplify } from './schema-forms.js';

/** A schema of several, of which a value has to fit one. */
export interface Alternative {
  /** The name of the reference that leads to the schema, or the schema's title */
  readonly name: string | undefined;
  readonly schema: Schema;
}

/** Reads the schemas of a document. The same schema always has the same form, and is the same object. */
export interface SchemaReader {
  /** A schema without references, `allOf` and the forms of OpenAPI 3.0; `true`, `false` and none are schemas, too. */
  read(schema: Schema | boolean | undefined): Schema;
  /** The alternatives of `anyOf` and `oneOf`, each with the keywords beside them; a schema without any is its only alternative. */
  listAlternatives(form: Schema): readonly Alternative[];
  /** The alternatives, each with one type at most. */
  listSingleTypes(form: Schema): readonly Alternative[];
}

const NULL: Schema = { type: 'null' };

export function createSchemaReader(document: Document): SchemaReader {
  const forms = new WeakMap<Schema, Schema>();
  const alternatives = new WeakMap<Schema, readonly Alternative[]>();
  /** The lists of alternatives that are being read: one that contains itself adds nothing. */
  const open = new Set<unknown>();
  const singleTypes = new WeakMap<Schema, readonly Alternative[]>();

  const read = (schema: Schema | boolean | undefined): Schema => {
    if (typeof schema !== 'object' || schema === null) return schema === false ? { type: [] } : {};
    const known = forms.get(schema);
    if (known !== undefined) return known;
    // A schema that is a part of itself adds nothing.
    forms.set(schema, {});
    const form = toForm(schema);
    forms.set(schema, form);
    forms.set(form, form);
    return form;
  };

  const toForm = ({ $ref, allOf = [], nullable, ...own }: Schema): Schema => {
    const parts = [
      ...(typeof $ref === 'string' ? [read(resolve({ $ref }, document) as Schema)] : []),
      ...(allOf as Schema[]).map(read),
      ...(Object.keys(own).length > 0 ? [simplify(own as Schema)] : []),
    ];
    const form = parts.reduce(intersect, {});
    return nullable === true ? allowNull(form) : form;
  };

  const listAlternatives = (form: Schema): readonly Alternative[] => {
    const known = alternatives.get(form);
    if (known !== undefined) return known;
    const choices = (form.oneOf ?? form.anyOf) as Schema[] | undefined;
    if (choices === undefined) return [{ name: undefined, schema: form }];
    if (open.has(choices)) return [];
    open.add(choices);
    const listed = listChoices(form, choices);
    open.delete(choices);
    alternatives.set(form, listed);
    return listed;
  };

  const listChoices = ({ oneOf, anyOf, nullable, ...rest }: Schema, choices: readonly Schema[]) => {
    const own = { ...rest, ...(oneOf !== undefined && anyOf !== undefined && { anyOf }) };
    const isBare = Object.keys(own).every(isAnnotation);
    const listed = choices.flatMap((choice) => {
      const name = nameOf(choice) ?? (choice.title as string | undefined);
      const schema = isBare ? choice : ({ allOf: [own, choice] } as unknown as Schema);
      const inner = listAlternatives(read(schema));
      return inner.length === 1 ? inner.map((each) => ({ ...each, name })) : inner;
    });
    return nullable === true ? [...listed, { name: undefined, schema: NULL }] : listed;
  };

  const listSingleTypes = (form: Schema): readonly Alternative[] => {
    const known = singleTypes.get(form);
    if (known !== undefined) return known;
    const result = joinValues(listAlternatives(form).flatMap(splitTypes));
    singleTypes.set(form, result);
    return result;
  };

  return { read, listAlternatives, listSingleTypes };
}

/** `nullable: true` of OpenAPI 3.0 */
function allowNull(form: Schema): Schema {
  const types = listTypes(form);
  if (types === undefined) {
    return form.anyOf === undefined && form.oneOf === undefined ? form : { ...form, nullable: true };
  }
  const values = form.enum as unknown[] | undefined;
  return {
    ...form,
    ...(!types.includes('null') && { type: [...types, 'null'] }),
    ...(values !== undefined && !values.includes(null) && { enum: [...values, null] }),
  };
}

/** An alternative for each type that a schema allows. */
function splitTypes(alternative: Alternative): readonly Alternative[] {
  const { schema } = alternative;
  const types = listTypes(schema);
  if (types === undefined || types.length < 2) return [alternative];
  return types.map((type) => ({ ...alternative, schema: limitToType(schema, type) }));
}

/** The alternatives that only list values of a type are one list: each value may be described by itself. */
function joinValues(alternatives: readonly Alternative[]): readonly Alternative[] {
  const isList = ({ schema }: Alternative) =>
    schema.enum !== undefined &&
    Object.keys(schema).every((keyword) => ['type', 'enum'].includes(keyword) || isAnnotation(keyword));
  const typeOf = ({ schema }: Alternative) => String(schema.type);
  const lists = alternatives.filter(isList);
  const joined = [...new Set(lists.map(typeOf))].map((type) => {
    const [first, ...others] = lists.filter((each) => typeOf(each) === type) as [
      Alternative,
      ...Alternative[],
    ];
    const values = [first, ...others].flatMap(({ schema }) => schema.enum as unknown[]);
    return others.length === 0 ? first : { ...first, schema: { ...first.schema, enum: values } };
  });
  return [...joined, ...alternatives.filter((each) => !isList(each))];
}
