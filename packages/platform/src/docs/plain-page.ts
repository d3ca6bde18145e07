import type { oas31 } from 'zod-openapi';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;
const STYLE =
  'body{max-width:50rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif;color-scheme:light dark}' +
  'pre{overflow:auto;padding:.5rem;background:rgb(128 128 128/.12)}code{overflow-wrap:anywhere}' +
  'th{text-align:left}td,th{padding:.2rem .8rem .2rem 0;vertical-align:top}';

/** An OpenAPI document as a page without scripts, for a store that has built none of its own. */
export function renderPlainPage(document: object): string {
  const { info, servers = [], paths = {}, components = {} } = document as oas31.OpenAPIObject;
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = (item as oas31.PathItemObject)[method];
      return operation === undefined
        ? []
        : [renderOperation(`${method.toUpperCase()} ${path}`, operation, components)];
    }),
  );
  const schemas = Object.entries(components.schemas ?? {}).map(
    ([name, schema]) => `<h3 id="schema-${escapeHtml(name)}">${escapeHtml(name)}</h3>${renderJson(schema)}`,
  );
  return (
    `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
    `<title>${escapeHtml(info.title)}</title><style>${STYLE}</style><h1>${escapeHtml(info.title)}</h1>` +
    `<p>This document for programs: <a href="openapi.json">openapi.json</a>, <a href="openapi.yaml">openapi.yaml</a></p>` +
    `${renderText(info.description)}<h2>Operations</h2>` +
    `<p>Addresses begin with ${servers.map(({ url }) => `<code>${escapeHtml(url)}</code>`).join(' or ')}.</p>` +
    `${operations.join('')}<h2>Schemas</h2>${schemas.join('')}</html>\n`
  );
}

function renderOperation(
  title: string,
  { operationId, summary, description, parameters = [], requestBody, responses = {} }: oas31.OperationObject,
  components: oas31.ComponentsObject,
): string {
  const rows = parameters.map((each) => {
    const {
      name,
      in: place,
      required,
      description: text,
      schema,
    } = resolve<oas31.ParameterObject>(each, components);
    return [`${name} (${place}${required ? ', required' : ''})`, text, JSON.stringify(schema)];
  });
  const body = requestBody && resolve<oas31.RequestBodyObject>(requestBody, components);
  const answers = Object.entries(responses).map(([status, each]) => {
    const response = resolve<oas31.ResponseObject>(each as oas31.ResponseObject, components);
    return [status, response.description, ...listSchemas(response.content)];
  });
  return (
    `<h3 id="${escapeHtml(operationId ?? title)}"><code>${escapeHtml(title)}</code></h3>` +
    `<p>${escapeHtml(summary ?? '')} (<code>${escapeHtml(operationId ?? '')}</code>)</p>${renderText(description)}` +
    (rows.length > 0 ? renderTable(['parameter', 'what it is', 'schema'], rows) : '') +
    (body ? `<p>Body: ${listSchemas(body.content).map(linkSchema).join(', ')}</p>` : '') +
    renderTable(['status', 'when', 'schema'], answers)
  );
}

/** The names of the schemas, or the schemas themselves if they have none. */
function listSchemas(content: oas31.ContentObject = {}): string[] {
  const schemas = Object.values(content).map(({ schema = {} }) => schema);
  return schemas.map(
    (schema) =>
      ('$ref' in schema ? String(schema.$ref).split('/').at(-1) : undefined) ?? JSON.stringify(schema),
  );
}

function resolve<Type extends object>(value: Type | oas31.ReferenceObject, components: object): Type {
  if (!('$ref' in value)) return value;
  const [, , kind = '', name = ''] = String(value.$ref).split('/');
  return (components as Record<string, Record<string, Type>>)[kind]?.[name] as Type;
}

const linkSchema = (name: string) =>
  /^\w+$/.test(name) ? `<a href="#schema-${name}">${name}</a>` : `<code>${escapeHtml(name)}</code>`;

function renderTable(
  headings: readonly string[],
  rows: readonly (readonly (string | undefined)[])[],
): string {
  const head = headings.map((heading) => `<th>${heading}</th>`).join('');
  const body = rows.map(([name = '', text = '', schema]) => {
    const cells = [
      `<code>${escapeHtml(name)}</code>`,
      escapeHtml(text),
      schema === undefined ? '' : linkSchema(schema),
    ];
    return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
  });
  return `<table><tr>${head}</tr>${body.join('')}</table>`;
}

const renderJson = (value: unknown) => `<pre>${escapeHtml(JSON.stringify(value, null, 2))}</pre>`;

/** Renders Markdown by paragraph; a table stays as it is. */
function renderText(text = ''): string {
  const paragraphs = text.split(/\n{2,}/).filter((paragraph) => paragraph !== '');
  return paragraphs
    .map((each) => (each.startsWith('|') ? `<pre>${escapeHtml(each)}</pre>` : `<p>${escapeHtml(each)}</p>`))
    .join('');
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escapeHtml = (text: string) => text.replaceAll(/[&<>"]/g, (character) => ENTITIES[character] as string);
