export {
  hasProgram,
  isOnPath,
  MISSING_FOLDER,
  reportMissing,
} from '../../../limits/test/support/programs.js';
