/**
 * The README with its tables of plans and operations as the code has them.
 *
 * @param {string} readme
 * @param {string} planTable Markdown
 * @param {object} document the OpenAPI document
 */
export function updateReadme(readme, planTable, document) {
  return replaceSection(replaceSection(readme, 'plans', planTable), 'operations', toOperationTable(document));
}

/**
 * A guide with the table of plans as the code has it. The reference page shows guides as they are, so they have no
 * comments around sections: the table is the one with the same headings.
 */
export function updatePlanTable(guide, planTable) {
  const headings = planTable.slice(0, planTable.indexOf('\n'));
  const start = guide.indexOf(headings);
  if (start < 0) throw new Error(`There is no table with ${headings}`);
  const rest = guide.slice(start).replace(/^(?:\|.*\n)+/, '');
  return `${guide.slice(0, start)}${planTable}\n${rest}`;
}

/** Sections are between two comments, `<!-- name, written by npm run docs:update -->` and `<!-- /name -->`. */
function replaceSection(readme, name, content) {
  const section = new RegExp(
    `(?<=<!-- ${name}, written by npm run docs:update -->\n).*?(?=\n<!-- /${name} -->)`,
    's',
  );
  if (!section.test(readme)) throw new Error(`README.md has no section of ${name}`);
  return readme.replace(section, () => content);
}

function toOperationTable({ paths }) {
  const rows = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => [
      describeName(operation),
      `\`${method.toUpperCase()} /v1${path}${describeQuery(operation)}\``,
      operation.summary,
      operation.security.flatMap(Object.values).map((scope) => `\`${scope}\``),
      Object.keys(operation.responses).find((status) => status.startsWith('2')),
    ]),
  );
  const headings = ['operation', 'request', 'what it does', 'scope', 'success'];
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
