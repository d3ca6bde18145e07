import { benchLimits } from './limits.js';
import { benchStart } from './start.js';

const benches: Readonly<Record<string, () => Promise<void>>> = { limits: benchLimits, start: benchStart };

const [name = ''] = process.argv.slice(2);
const bench = benches[name];
if (bench === undefined) {
  process.stdout.write(`Measurements: npm run bench -- ${Object.keys(benches).join(' | ')}\n`);
  process.exit(name === '' ? 0 : 1);
}
await bench();
process.exit(0);
