import { readFileSync } from 'node:fs';

const README = 'README.md';
const RESULTS = 'bench/RESULTS.md';
const OPERATIONS = 'docs/operations.md';

/**
 * Every document that says what the code knows, too: its path, and the text with that as the code has it.
 *
 * @param {object} document the OpenAPI document
 * @param {{ PLAN_NAMES: readonly string[], toPlanTable: () => string, SCOPES: readonly string[] }} contract
 * @returns {Record<string, string>}
 */
export function deriveDocs(document, { PLAN_NAMES, toPlanTable, SCOPES }) {
  const operations = locateOperations(document);
  const scopes = toScopeTable(operations, SCOPES);
  const plans = toPlanTable();
  const tables = {
    [README]: [toOperationTable(operations), toSpeedTable(readFileSync(RESULTS, 'utf8'))],
    'docs/guides/01-keys.md': [scopes],
    'docs/guides/04-rate-limits.md': [plans],
    'docs/guides/compatibility.md': [toStabilityTable(operations)],
  };
  const texts = Object.fromEntries(
    Object.entries(tables).map(([path, own]) => [path, own.reduce(replaceTable, readFileSync(path, 'utf8'))]),
  );
  return { ...texts, [OPERATIONS]: replaceSynopsis(readFileSync(OPERATIONS, 'utf8'), PLAN_NAMES) };
}

/** The table in a text is the one with the same headings, because guides are shown as they are, comments included. */
function replaceTable(text, table) {
  const headings = table.slice(0, table.indexOf('\n') + 1);
  const start = text.indexOf(headings);
  if (start < 0) throw new Error(`There is no table with ${headings}`);
  const rest = text.slice(start).replace(/^(?:\|.*\n)+/, '');
  return `${text.slice(0, start)}${table}\n${rest}`;
}

function replaceSynopsis(text, planNames) {
  const synopsis = /(?<=keys -- create --name NAME --plan )\S+/;
  if (!synopsis.test(text)) throw new Error(`${OPERATIONS} has no synopsis of keys create`);
  return text.replace(synopsis, planNames.join('|'));
}

function locateOperations({ paths }) {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      ...operation,
      request: `${method.toUpperCase()} /v1${path}`,
      scopes: operation.security.flatMap(Object.values).flat(),
    })),
  );
}

function toOperationTable(operations) {
  const rows = operations.map((operation) => [
    describeName(operation),
    `\`${operation.request}${describeQuery(operation)}\``,
    operation.summary,
    operation.scopes.map((scope) => `\`${scope}\``).join(', ') || 'any',
    Object.keys(operation.responses).find((status) => status.startsWith('2')),
  ]);
  return toTable(['operation', 'request', 'what it does', 'scope', 'success'], rows);
}

function toScopeTable(operations, scopes) {
  const rows = scopes.map((scope) => {
    const allowed = operations.filter((operation) => operation.scopes.includes(scope));
    return [`\`${scope}\``, allowed.map(({ operationId }) => operationId).join(', ')];
  });
  return toTable(['scope', 'allows'], rows);
}

function toStabilityTable(operations) {
  const rows = operations.map((operation) => [
    ...[operation.operationId, operation['x-stability']],
    ...[operation['x-deprecated-since'] ?? '', operation['x-sunset'] ?? ''],
  ]);
  return toTable(['operation', 'stability', 'deprecated since', 'removed on'], rows);
}

/** Of the first load with 32 connections, as the bench has written it. */
function toSpeedTable(results) {
  const [, load, figures] = /^### (32 connections, .+)\n\n((?:\|.*\n)+)/m.exec(results);
  const [headings, , ...rows] = figures
    .trim()
    .split('\n')
    .map((line) => line.slice(2, -2).split(' | '));
  const find = (heading, column) => rows.find(([name]) => name === column)[headings.indexOf(heading)];
  const cpuOf = (server, column) => Number(find(`CPU µs ${server}`, column).replaceAll(',', ''));
  const columns = ['list of 20', 'get', 'create'];
  const servers = { 'this service': 'service', 'Hono with Drizzle': 'hono' };
  const measures = {
    'requests per second': (server) => columns.map((column) => find(server, column)),
    'CPU per request': (server) =>
      columns.map((column) => `${Math.round((100 * cpuOf(server, column)) / cpuOf('baseline', column))} %`),
  };
  return toTable(
    ['server', load, ...columns],
    Object.entries(servers).flatMap(([name, server]) =>
      Object.entries(measures).map(([measure, read]) => [name, measure, ...read(server)]),
    ),
  );
}

function toTable(headings, rows) {
  return [headings, headings.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function describeName({ operationId, deprecated, 'x-stability': stability }) {
  const remarks = [...(deprecated ? ['deprecated'] : []), ...(stability === 'stable' ? [] : [stability])];
  return remarks.length === 0 ? operationId : `${operationId} (${remarks.join(', ')})`;
}

function describeQuery({ parameters = [] }) {
  const names = parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => `${name}=`);
  return names.length === 0 ? '' : `?${names.join('&')}`;
}
