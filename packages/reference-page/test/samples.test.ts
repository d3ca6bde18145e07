import { readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: { readonly examples?: readonly unknown[] };
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly 'x-codeSamples': readonly { readonly label: string; readonly source: string }[];
}

const { addSamples } = await import(pathToFileURL('packages/reference-page/src/samples.js').href);
const document = JSON.parse(await readFile('docs/openapi.json', 'utf8'));
addSamples(document, 'https://pets.example/v1', 'curl', 'client-1.0.0-0123456789abcdef.tgz');

const operations = (Object.entries(document.paths) as [string, Record<string, Operation>][]).flatMap(
  ([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
);

test.each(operations)(
  '$method $path has samples with all that has to be sent',
  ({ path, method, operation }) => {
    const { operationId, parameters = [], 'x-codeSamples': samples } = operation;
    expect(samples.map(({ label }) => label)).toEqual(['curl', 'TypeScript', 'JavaScript', 'Python']);
    const required = parameters.filter((parameter) => parameter.required && parameter.in !== 'header');
    const exampleOf = ({ schema }: Parameter) => String(schema.examples?.[0]);
    const query = required.filter((parameter) => parameter.in === 'query');
    const url = required.reduce(
      (text, parameter) => text.replace(`{${parameter.name}}`, exampleOf(parameter)),
      path,
    );
    const address =
      query.length === 0 ? url : `${url}?${query.map((p) => `${p.name}=${exampleOf(p)}`).join('&')}`;
    for (const { label, source } of samples) {
      if (label === 'TypeScript') {
        // The address that leads to it would be in a lock file, with the checksum of what is there today.
        expect(source).toMatch(
          /^\/\/ npm install https:\/\/pets\.example\/client-1\.0\.0-[\da-f]{16}\.tgz$/m,
        );
        expect(source).toContain(`client.${operationId}.`);
        for (const { name } of required) expect(source).toContain(`${name}:`);
      } else {
        expect(source).toContain(`https://pets.example/v1${address}`);
        if (method !== 'GET') expect(source).toContain(method);
      }
    }
  },
);
