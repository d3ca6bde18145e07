/** A heading of the third level of a guide with one of these names is a tab, not a section. */
export const LANGUAGES = ['curl', 'JavaScript', 'TypeScript', 'Python', 'Java', 'Go'];
