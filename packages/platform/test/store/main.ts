import { run } from '@animal-store/platform';
import { resources } from './router.js';

await run({ resources });
