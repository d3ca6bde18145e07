import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { findCurrentClient } from '../client-package.js';
import { run } from '../run-tool.js';
import { createSbom } from './sbom.js';

/*
 * Writes the files of a release into the folder of the argument: the client that the build has packed, the packages that
 * npm may publish, and the SBOM of a deployment.
 */
const [output = 'dist/release'] = process.argv.slice(2);

mkdirSync(output, { recursive: true });
const client = findCurrentClient();
copyFileSync(client, join(output, basename(client)));
writeFileSync(`${output}/sbom.cdx.json`, createSbom());

const packages = readdirSync('packages')
  .map((name) => `./packages/${name}`)
  .filter((folder) => !JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')).private);
// `prepack` compiles them, whatever a user's .npmrc says of scripts.
run('npm', ['pack', '--ignore-scripts=false', '--loglevel=error', '--pack-destination', output, ...packages]);
