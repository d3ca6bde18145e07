/*
 * A request of every operation as code that works as pasted, first with the typed client, in place of Scalar's samples:
 * those for Python lose the port or import nothing, and those for JavaScript show no response. The page's blocks.js
 * fills in the reader's key.
 */
const KEY = 'ms_test_…';
const AUTHORIZATION = `Bearer ${KEY}`;
const MEDIA_TYPE = 'application/json';

/**
 * @param {object} openapi is changed
 * @param {string} baseUrl of the operations' paths
 * @param {string} language comes first, because Scalar shows the first sample
 * @param {string | undefined} client the file of the packed client, whose bytes never change, if the service serves one
 */
export function addSamples(openapi, baseUrl, language, client) {
  for (const [path, item] of Object.entries(openapi.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const request = readRequest(baseUrl, path, method, operation);
      const samples = [
        ...(client ? [{ lang: 'ts', label: 'TypeScript', source: toTypeScript(request, client) }] : []),
        { lang: 'bash', label: 'curl', source: toCurl(request) },
        { lang: 'js', label: 'JavaScript', source: toJavaScript(request) },
        { lang: 'python', label: 'Python', source: toPython(request) },
      ];
      const isFirst = ({ label }) => label === language;
      operation['x-codeSamples'] = samples.sort((a, b) => isFirst(b) - isFirst(a));
    }
  }
}

/** Optional parameters are left out, because no two readers should paste the same Idempotency-Key or cursor. */
function readRequest(baseUrl, path, method, { operationId, parameters = [], requestBody, responses }) {
  const required = parameters.filter((parameter) => parameter.required && parameter.in !== 'header');
  const values = required.map(({ name, schema, ...parameter }) => [name, schema.examples[0], parameter.in]);
  const address = values.reduce((text, [name, value]) => text.replace(`{${name}}`, value), baseUrl + path);
  const inQuery = values.filter(([, , place]) => place === 'query');
  const query = new URLSearchParams(inQuery.map(([name, value]) => [name, value]));
  const example = requestBody?.content[MEDIA_TYPE].example;
  const input = { ...Object.fromEntries(values), ...example };
  return {
    operationId,
    serviceUrl: baseUrl.replace(/\/v1$/, ''),
    url: query.size === 0 ? address : `${address}?${query}`,
    method: method.toUpperCase(),
    body: example && JSON.stringify(example, undefined, 2),
    input: Object.keys(input).length === 0 ? '' : toLiteral(input),
    hasOutput: responses[204] === undefined,
  };
}

/** An object as it is written by hand: { name: 'Rex' } */
function toLiteral(object) {
  const members = Object.entries(object).map(([name, value]) => {
    const text = JSON.stringify(value);
    return `${name}: ${typeof value === 'string' ? `'${text.slice(1, -1).replaceAll("'", "\\'")}'` : text}`;
  });
  return `{ ${members.join(', ')} }`;
}

function toTypeScript({ operationId, serviceUrl, method, input }, client) {
  const kind = method === 'GET' ? 'query' : 'mutate';
  return `// npm install ${serviceUrl}/${client}
import { createClient } from 'my-store-client';

const client = createClient({
  baseUrl: '${serviceUrl}',
  apiKey: '${KEY}',
});
console.log(await client.${operationId}.${kind}(${input}));`;
}

function toCurl({ url, method, body }) {
  const options = [
    `-X ${method}`,
    `-H 'Authorization: ${AUTHORIZATION}'`,
    ...(body ? [`-H 'Content-Type: ${MEDIA_TYPE}'`, `-d '${body.replaceAll("'", String.raw`'\''`)}'`] : []),
  ];
  return ['curl', ...options, `'${url}'`].join(' \\\n  ');
}

function toJavaScript({ url, method, body, hasOutput }) {
  return `const response = await fetch('${url}', {
  method: '${method}',
  headers: {
    Authorization: '${AUTHORIZATION}',${body ? `\n    'Content-Type': '${MEDIA_TYPE}',` : ''}
  },${body ? `\n  body: JSON.stringify(${body.replaceAll('\n', '\n  ')}),` : ''}
});
console.log(response.status${hasOutput ? ', await response.json()' : ''});`;
}

function toPython({ url, method, body, hasOutput }) {
  return `import json, urllib.request

request = urllib.request.Request(
    '${url}',
    method='${method}',
    headers={
        'Authorization': '${AUTHORIZATION}',${body ? `\n        'Content-Type': '${MEDIA_TYPE}',` : ''}
    },${body ? `\n    data=json.dumps(${body.replaceAll(/\n( *)/g, '\n    $1$1')}).encode(),` : ''}
)
with urllib.request.urlopen(request) as response:
    print(response.status${hasOutput ? ', json.load(response)' : ''})`;
}
