/** What a tool for development may use, such as @animal-store/tools. */
export { withDatabase } from '../cli/with-database.js';
export { schemaOf } from '../connections/schema-name.js';
export { describeService } from '../docs/service-description.js';
export { applyMigrations } from '../migrations/migration-runner.js';
export {
  checkMigrations,
  MIGRATIONS_TABLE,
  prismaFolderOf,
  readMigrations,
} from '../migrations/migrations.js';
export { copyPlatformFiles, listPlatformFiles } from '../migrations/platform-files.js';
export { checkDefinition } from '../operations/definition-check.js';
export { checkResources } from '../operations/resource-check.js';
export { toInstalledCommands } from '../operator-errors/installed-commands.js';
export { OperatorError } from '../operator-errors/operator-error.js';
export { loadEnvironmentFile } from '../process/environment-file.js';
export { exitWithCommandError } from '../process/exit.js';
export { addPlans, dropLimits, findDefinitionGap, findRemovedPlans } from './draft.js';
