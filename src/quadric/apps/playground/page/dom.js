/** Short ways to find and make elements. */

/** @param {string} id */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {string} id */
export const inputById = (id) => /** @type {HTMLInputElement} */ (byId(id));

/** @param {string} id */
export const dialogById = (id) => /** @type {HTMLDialogElement} */ (byId(id));

/** @param {string} id @param {() => void} action */
export const onClick = (id, action) => byId(id).addEventListener("click", action);

/**
 * A new element with children and attributes; functions listen to the event of that name.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number | (() => unknown)>} attributes
 * @param {...(Node | string)} children
 */
export function make(tag, attributes = {}, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (typeof value === "function") element.addEventListener(name, value);
		else element.setAttribute(name, String(value));
	}
	element.append(...children);
	return element;
}

/**
 * Writes the text only if it has changed, to save a layout.
 * @param {Element} element @param {string} text
 */
export function setText(element, text) {
	if (element.textContent !== text) element.textContent = text;
}

/** @param {HTMLCanvasElement} canvas */
const contextOf = (canvas) => /** @type {Context} */ (canvas.getContext("2d"));

/**
 * The context of a cleared canvas in which a unit is a CSS pixel.
 * @param {HTMLCanvasElement} canvas
 */
export function sharpContext(canvas) {
	const ratio = Math.min(devicePixelRatio, 2);
	canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
	canvas.height = Math.max(1, Math.round(canvas.clientHeight * ratio));
	const context = contextOf(canvas);
	context.scale(ratio, ratio);
	return context;
}

/** @param {HTMLCanvasElement} canvas @param {Pixels} pixels @param {number} nx @param {number} ny */
export function showPixels(canvas, pixels, nx, ny) {
	if (canvas.width !== nx) canvas.width = nx;
	if (canvas.height !== ny) canvas.height = ny;
	contextOf(canvas).putImageData(new ImageData(pixels, nx, ny), 0, 0);
}

/**
 * Strokes the current path.
 * @param {Context} context @param {string} color @param {number} width
 * @param {number[]} dashes
 */
export function stroke(context, color, width, dashes = []) {
	context.strokeStyle = color;
	context.lineWidth = width;
	context.setLineDash(dashes);
	context.stroke();
}
