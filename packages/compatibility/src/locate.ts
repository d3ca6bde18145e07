import type { Document, Located, Operation } from './document.js';
import { resolve } from './references.js';

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options', 'trace'];

/** The operations by method and path, the path of the first server (such as /v1) included. */
export function locateOperations(document: Document): Map<string, Located> {
  const base = findBasePath(document);
  const operations = new Map<string, Located>();
  for (const [path, reference] of Object.entries(document.paths ?? {})) {
    const item = resolve(reference, document);
    for (const method of METHODS.filter((each) => item[each] !== undefined)) {
      const own = item[method] as Operation;
      // The operation's parameters come last, so that they replace those of the path with the same name.
      const parameters = [...(item.parameters ?? []), ...(own.parameters ?? [])];
      const operation = { ...own, parameters };
      operations.set(`${method.toUpperCase()} ${base}${path}`, { document, operation });
    }
  }
  return operations;
}

/** The path of the first server without a trailing slash; empty if the document names no server. */
function findBasePath({ servers: [server] = [] }: Document): string {
  if (server === undefined) return '';
  const { url, variables = {} } = server;
  const address = url.replaceAll(/\{([^}]*)\}/g, (_, name: string) => variables[name]?.default ?? name);
  const { pathname } = URL.canParse(address, 'http://localhost')
    ? new URL(address, 'http://localhost')
    : { pathname: address };
  return pathname.replace(/\/$/, '');
}
