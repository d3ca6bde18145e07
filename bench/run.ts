import { benchCapacity } from './capacity.js';
import { benchCreates } from './creates.js';
import { benchKeys } from './keys.js';
import { benchProxy } from './proxy.js';
import { benchRequests } from './requests.js';

/** `npm run bench -- [NAME] [OPTIONS]`; bench/README.md explains what each measures and how to compare two versions. */
const benches: Readonly<Record<string, (args: string[]) => Promise<void>>> = {
  requests: benchRequests,
  capacity: benchCapacity,
  proxy: benchProxy,
  creates: benchCreates,
  keys: benchKeys,
};

const args = process.argv.slice(2);
const name = args[0] === undefined || args[0].startsWith('-') ? 'requests' : args.shift();
const bench = benches[name ?? ''];
if (bench === undefined) {
  process.stderr.write(`Usage: npm run bench -- [${Object.keys(benches).join(' | ')}] [OPTIONS]\n`);
  process.exit(1);
}
await bench(args);
process.exit();
