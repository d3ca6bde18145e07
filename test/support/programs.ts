export {
  hasProgram,
  isOnPath,
  MISSING_FOLDER,
  reportMissing,
} from '../../packages/limits/test/support/programs.js';
