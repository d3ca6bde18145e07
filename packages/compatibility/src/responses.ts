import { type Body, type Operation, type Response, resolve } from './document.js';
import { compareSchemas, type Direction, type SchemaComparison } from './schemas.js';

/** They go when a deprecation is withdrawn, as the 410 does. */
const DEPRECATION_HEADERS = ['Deprecation', 'Sunset', 'Link'];

export function compareResponses(
  old: Operation,
  current: Operation,
  start: (direction: Direction) => SchemaComparison,
): void {
  const [success, error] = [start('response'), start('error')];
  const isWithdrawn = old.deprecated === true && current.deprecated !== true;
  const ignored = isWithdrawn ? ['410', ...DEPRECATION_HEADERS] : [];
  for (const [status, response] of Object.entries(old.responses)) {
    const counterpart = current.responses[status];
    const comparison = Number(status) < 400 ? success : error;
    if (counterpart !== undefined) compareResponse(status, response, counterpart, ignored, comparison);
    else if (!ignored.includes(status)) comparison.report('statuses-kept', `${status} is gone`);
  }
  for (const status of Object.keys(current.responses)) {
    if (status in old.responses || Number(status) >= 400) continue;
    success.report('statuses-kept', `${status} is new`);
  }
}

function compareResponse(
  status: string,
  before: Response,
  after: Response,
  ignoredHeaders: readonly string[],
  comparison: SchemaComparison,
): void {
  const { report } = comparison;
  const [old, current] = [resolve(before, comparison.before), resolve(after, comparison.after)];
  for (const [name, reference] of Object.entries(old.headers ?? {})) {
    const place = `header ${name} of ${status}`;
    const header = resolve(reference, comparison.before);
    const counterpart = current.headers?.[name];
    if (counterpart === undefined) {
      if (!ignoredHeaders.includes(name)) report('output-kept', `${place} is gone`);
      continue;
    }
    const { required, schema } = resolve(counterpart, comparison.after);
    if (header.required && !required) report('output-kept', `${place} is optional`);
    compareSchemas(header.schema, schema, place, comparison);
  }
  compareContent(old, current, `response ${status}`, comparison);
  const codes = listCodes(current);
  for (const code of listCodes(old)) {
    if (!codes.has(code)) report('codes-kept', `response ${status} is no longer ${code}`);
  }
}

/** The document has an example of each error code that a status can have. */
function listCodes({ content = {} }: Body): Set<string> {
  const examples = Object.values(content).flatMap((media) => Object.values(media.examples ?? {}));
  return new Set(examples.flatMap(({ value }) => value?.code ?? []));
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
