import { listExampleCodes } from './codes.js';
import type { OperationComparison, SchemaComparison } from './comparison.js';
import { type Described, type Located, type Response, schemaOf } from './document.js';
import { resolve } from './references.js';
import { compareContent } from './requests.js';
import { compareSchemas } from './schemas.js';

/** These disappear when a deprecation is withdrawn, as the 410 does. */
const DEPRECATION_HEADERS = ['deprecation', 'sunset', 'link'];

export function compareResponses(operations: OperationComparison): void {
  const { old, current, report, compareIn } = operations;
  const [success, error] = [compareIn('response'), compareIn('error')];
  const isWithdrawn = old.operation.deprecated === true && current.operation.deprecated !== true;
  const ignored = isWithdrawn ? ['410', ...DEPRECATION_HEADERS] : [];
  const [before, after] = [old.operation.responses ?? {}, current.operation.responses ?? {}];
  for (const [status, response] of listStatuses(before)) {
    const counterpart = findResponse(after, status);
    const comparison = isSuccess(status) ? success : error;
    if (counterpart !== undefined) {
      compareResponse(
        status,
        { ...old, response },
        { ...current, response: counterpart },
        ignored,
        comparison,
      );
    } else if (!ignored.includes(status)) report('statuses-kept', `${status} is gone`);
  }
  for (const [status] of listStatuses(after)) {
    if (isSuccess(status) && !isCovered(before, status)) report('statuses-kept', `${status} is new`);
  }
}

type Responses = Readonly<Record<string, Response>>;

function listStatuses(responses: Responses): [string, Response][] {
  return Object.entries(responses).filter(([status]) => !status.startsWith('x-'));
}

/** Whether a status, a class such as 2XX, or `default`, which stands for errors, is a success. */
function isSuccess(status: string): boolean {
  return /^[123]/.test(status);
}

const classOf = (status: string) => `${status.charAt(0)}XX`;

/** The response of a status, or of its class. */
function findResponse(responses: Responses, status: string): Response | undefined {
  return responses[status] ?? responses[classOf(status)] ?? responses[classOf(status).toLowerCase()];
}

/** Whether clients could expect a status, or one of a class. */
function isCovered(responses: Responses, status: string): boolean {
  return findResponse(responses, status) !== undefined;
}

type LocatedResponse = Located & { readonly response: Response };

function compareResponse(
  status: string,
  before: LocatedResponse,
  after: LocatedResponse,
  ignoredHeaders: readonly string[],
  comparison: SchemaComparison,
): void {
  const { report } = comparison;
  const [old, current] = [before, after].map(({ response, document }) => resolve(response, document)) as [
    Response,
    Response,
  ];
  const headers = listHeaders(current, after);
  for (const [name, header] of listHeaders(old, before)) {
    const place = `header ${header.name} of ${status}`;
    const counterpart = headers.get(name);
    if (counterpart === undefined) {
      if (!ignoredHeaders.includes(name)) report('output-kept', `${place} is gone`);
      continue;
    }
    if (header.required && !counterpart.required) report('output-kept', `${place} is optional`);
    compareSchemas(schemaOf(header), schemaOf(counterpart), place, comparison);
  }
  compareContent(old, current, `response ${status}`, comparison);
  if (comparison.direction !== 'error') return;
  const codes = listExampleCodes(current, after.document);
  for (const code of listExampleCodes(old, before.document)) {
    if (!codes.has(code)) report('codes-kept', `response ${status} is no longer ${code}`);
  }
}

/** The headers by name, which is independent of case. */
function listHeaders(
  { headers = {} }: Response,
  { document }: Located,
): Map<string, Described & { name: string }> {
  return new Map(
    Object.entries(headers).map(([name, header]) => [
      name.toLowerCase(),
      { ...resolve(header, document), name },
    ]),
  );
}
