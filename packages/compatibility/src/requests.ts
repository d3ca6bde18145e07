import type { OperationComparison, SchemaComparison } from './comparison.js';
import { type Body, type Located, type Parameter, schemaOf } from './document.js';
import { resolve } from './references.js';
import { compareSchemas } from './schemas.js';

export function compareRequests({ old, current, report, compareIn }: OperationComparison): void {
  const comparison = compareIn('request');
  compareParameters(old, current, comparison);
  const [body, bodyNow] = [readBody(old), readBody(current)];
  if (bodyNow?.required && !body?.required) report('input-optional', 'request body is required');
  if (body !== undefined) compareContent(body, bodyNow ?? {}, 'request body', comparison);
}

function readBody({ operation: { requestBody }, document }: Located) {
  return requestBody === undefined ? undefined : resolve(requestBody, document);
}

function compareParameters(old: Located, current: Located, comparison: SchemaComparison): void {
  const [before, after] = [listParameters(old), listParameters(current)];
  for (const [name, parameter] of before) {
    const counterpart = after.get(name);
    if (counterpart === undefined) comparison.report('input-kept', `${name} is gone`);
    else {
      const [written, accepted] = [describeStyle(parameter), describeStyle(counterpart)];
      if (written !== accepted) comparison.report('input-accepted', `${name} is ${accepted}, was ${written}`);
      compareSchemas(schemaOf(parameter), schemaOf(counterpart), name, comparison);
    }
  }
  for (const [name, { required }] of after) {
    if (required && !before.get(name)?.required) comparison.report('input-optional', `${name} is required`);
  }
}

/** How a parameter is written, with the defaults of OpenAPI 3.1 (section 4.8.12.2). */
function describeStyle({
  in: place,
  style,
  explode,
  allowReserved = false,
  schema,
  content,
}: Parameter): string {
  if (schema === undefined && content !== undefined) return `written as ${Object.keys(content)[0]}`;
  const written = style ?? (place === 'query' || place === 'cookie' ? 'form' : 'simple');
  const isExploded = explode ?? written === 'form';
  return `of style ${written}${isExploded ? ', exploded' : ''}${allowReserved ? ', with reserved characters' : ''}`;
}

/** By place and name; names of headers are independent of case. */
function listParameters({ operation: { parameters = [] }, document }: Located): Map<string, Parameter> {
  return new Map(
    parameters
      .map((parameter) => resolve(parameter, document))
      .map((parameter) => {
        const name = parameter.in === 'header' ? parameter.name.toLowerCase() : parameter.name;
        return [`${parameter.in} parameter ${name}`, parameter];
      }),
  );
}

/** Bodies of requests and responses. */
export function compareContent(
  { content: old = {} }: Body,
  { content: current = {} }: Body,
  place: string,
  comparison: SchemaComparison,
): void {
  const rule = comparison.direction === 'request' ? 'input-kept' : 'output-kept';
  for (const [type, { schema }] of Object.entries(old)) {
    const counterpart = current[type];
    if (counterpart === undefined) comparison.report(rule, `${place}: ${type} is gone`);
    else compareSchemas(schema, counterpart.schema, place, comparison);
  }
}
