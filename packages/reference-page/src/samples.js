/*
 * A request of every operation as code that works as pasted, in place of Scalar's samples: those for Python lose the
 * port or import nothing, and those for JavaScript show no response. The page's blocks.js fills the reader's key in.
 */
const AUTHORIZATION = 'Bearer as_test_…';
const MEDIA_TYPE = 'application/json';

/**
 * @param {object} openapi is changed
 * @param {string} baseUrl of the operations' paths
 * @param {string} language comes first: Scalar shows the first sample
 */
export function addSamples(openapi, baseUrl, language) {
  for (const [path, item] of Object.entries(openapi.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const request = readRequest(baseUrl + path, method, operation);
      const samples = [
        { lang: 'bash', label: 'curl', source: toCurl(request) },
        { lang: 'js', label: 'JavaScript', source: toJavaScript(request) },
        { lang: 'python', label: 'Python', source: toPython(request) },
      ];
      const isFirst = ({ label }) => label === language;
      operation['x-codeSamples'] = samples.sort((a, b) => isFirst(b) - isFirst(a));
    }
  }
}

/** Optional parameters are left out: no two readers should paste the same Idempotency-Key or cursor. */
function readRequest(template, method, { parameters = [], requestBody }) {
  const url = parameters
    .filter((parameter) => parameter.in === 'path')
    .reduce((text, { name, schema }) => text.replace(`{${name}}`, schema.examples[0]), template);
  const example = requestBody?.content[MEDIA_TYPE].example;
  return { url, method: method.toUpperCase(), body: example && JSON.stringify(example, undefined, 2) };
}

function toCurl({ url, method, body }) {
  const options = [
    `-X ${method}`,
    `-H 'Authorization: ${AUTHORIZATION}'`,
    ...(body ? [`-H 'Content-Type: ${MEDIA_TYPE}'`, `-d '${body.replaceAll("'", String.raw`'\''`)}'`] : []),
  ];
  return ['curl', ...options, `'${url}'`].join(' \\\n  ');
}

function toJavaScript({ url, method, body }) {
  return `const response = await fetch('${url}', {
  method: '${method}',
  headers: {
    Authorization: '${AUTHORIZATION}',${body ? `\n    'Content-Type': '${MEDIA_TYPE}',` : ''}
  },${body ? `\n  body: JSON.stringify(${body.replaceAll('\n', '\n  ')}),` : ''}
});
console.log(response.status, await response.json());`;
}

function toPython({ url, method, body }) {
  return `import json, urllib.request

request = urllib.request.Request(
    '${url}',
    method='${method}',
    headers={
        'Authorization': '${AUTHORIZATION}',${body ? `\n        'Content-Type': '${MEDIA_TYPE}',` : ''}
    },${body ? `\n    data=json.dumps(${body.replaceAll(/\n( *)/g, '\n    $1$1')}).encode(),` : ''}
)
with urllib.request.urlopen(request) as response:
    print(response.status, json.load(response))`;
}
