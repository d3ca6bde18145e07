import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readCurrentClient } from '../client-package.js';
import { createSbom } from './sbom.js';

/*
 * Writes what belongs to a release into the folder of the argument: the client that the build has packed, and the SBOM of
 * what a deployment installs.
 */
const [output = 'dist/release'] = process.argv.slice(2);

mkdirSync(output, { recursive: true });
const client = readCurrentClient();
copyFileSync(join('dist/clients', client), join(output, client));
writeFileSync(`${output}/sbom.cdx.json`, createSbom());
