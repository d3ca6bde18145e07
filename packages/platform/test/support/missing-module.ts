/** Arguments of Node.js for a process in which a package is missing. */
export function withoutModule(specifier: string): string[] {
  return withHooks(`
    export function resolve(specifier, context, next) {
      if (specifier !== ${JSON.stringify(specifier)}) return next(specifier, context);
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    }`);
}

/** Arguments of Node.js for a process in which a module is another one, as an alias of Vitest has it. */
export function withAlias(alias: string, url: URL): string[] {
  return withHooks(`
    export function resolve(specifier, context, next) {
      return next(specifier === ${JSON.stringify(alias)} ? ${JSON.stringify(url)} : specifier, context);
    }`);
}

function withHooks(hooks: string): string[] {
  const preloaded = `
    import { register } from 'node:module';
    register(${JSON.stringify(toModule(hooks))});`;
  return ['--import', toModule(preloaded)];
}

function toModule(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}
