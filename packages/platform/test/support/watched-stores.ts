import type { Functions } from '../../src/connections/outage.js';
import type { Resource } from '../../src/operations/resource.js';

type Run = (call: () => Promise<unknown>) => Promise<unknown>;

/** Resources each call of whose stores is handed to a function, which may count it, delay it, or answer in its place. */
export function watchStores(resources: readonly Resource[], run: Run): Resource[] {
  return resources.map((resource) => ({
    ...resource,
    createStore(database) {
      const store = resource.createStore(database) as Readonly<Record<string, (...args: never[]) => unknown>>;
      const watched = Object.entries(store).map(([name, method]) => [
        name,
        (...args: never[]) => run(async () => method(...args)),
      ]);
      return Object.fromEntries(watched) as Functions<object>;
    },
  }));
}
