import { rename } from 'node:fs/promises';

await rename('dist/service-package.json', 'package.json');
