/** Arguments of Node.js for a process in which a package is missing. */
export function withoutModule(specifier: string): string[] {
  const hooks = `
    export function resolve(specifier, context, next) {
      if (specifier !== ${JSON.stringify(specifier)}) return next(specifier, context);
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    }`;
  const preloaded = `
    import { register } from 'node:module';
    register(${JSON.stringify(toModule(hooks))});`;
  return ['--import', toModule(preloaded)];
}

function toModule(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}
