import { benchGrowth } from './growth.js';
import { benchLimits } from './limits.js';
import { benchRequests } from './requests.js';
import { benchStart } from './start.js';

const benches: Readonly<Record<string, (options: ReadonlyMap<string, string>) => Promise<void>>> = {
  requests: benchRequests,
  limits: benchLimits,
  start: benchStart,
  growth: benchGrowth,
};

const values = process.argv.slice(2);
const options = new Map(
  values
    .filter((value) => value.startsWith('--'))
    .map((value) => value.slice(2).split('=', 2) as [string, string]),
);
const name = values.find((value) => !value.startsWith('--')) ?? 'requests';
const bench = benches[name];
if (bench === undefined) {
  process.stdout.write(`Measurements: npm run bench -- ${Object.keys(benches).join(' | ')}\n`);
  process.exit(1);
}
await bench(options);
process.exit(0);
