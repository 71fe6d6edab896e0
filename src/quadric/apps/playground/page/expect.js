/**
 * Throws an Error with a message for the user unless `ok`.
 * @param {unknown} ok @param {string} problem @returns {asserts ok}
 */
export function expect(ok, problem) {
	if (!ok) throw new Error(problem);
}

/** @param {unknown} error */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));
