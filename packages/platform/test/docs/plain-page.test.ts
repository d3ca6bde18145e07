import { expect, test } from 'vitest';
import { definition, resources } from '#operations-under-test';
import { renderPlainPage } from '../../src/docs/plain-page.js';
import { createChecker } from '../support/openapi-checker.js';

const { document, operations } = createChecker(resources);
const page = renderPlainPage(document);

test('a page without scripts has every operation, parameter, answer and schema of the document', () => {
  expect(page).not.toMatch(/<script/i);
  expect(page).toContain(`<h1>${definition.identity.title}</h1>`);
  for (const { method, path, operationId, parameters = [], responses } of operations) {
    const [, section = ''] = page.split(`<h3 id="${operationId}"><code>${method} ${path}`);
    const [own = ''] = section.split('<h3');
    for (const { name } of parameters) expect(own).toContain(`<code>${name} (`);
    for (const status of Object.keys(responses)) expect(own).toContain(`<code>${status}</code>`);
  }
  expect(operations.length).toBeGreaterThan(3);
  for (const name of Object.keys(document.components.schemas)) expect(page).toContain(`id="schema-${name}"`);
});

test('every link within the page leads somewhere', () => {
  const targets = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
  expect(targets.length).toBeGreaterThan(5);
  expect(targets.filter((id) => !page.includes(`id="${id}"`))).toEqual([]);
});

test('what a store writes into its document stays text', () => {
  const info = { title: '<b>Boats</b> & "more"', version: '1', description: '</p><script>alert(1)</script>' };
  const odd = renderPlainPage({ openapi: '3.1.0', info });
  expect(odd).toContain('<h1>&lt;b&gt;Boats&lt;/b&gt; &amp; &quot;more&quot;</h1>');
  expect(odd).not.toContain('<script');
});
