/** A worker that paints; see regions.js. */
import { paint } from "./regions.js";

self.onmessage = ({ data: job }) => {
	const painting = paint(job);
	const images = [painting.pixels, ...(painting.thumbs?.pixels.flat() ?? [])];
	self.postMessage(painting, { transfer: images.map(({ buffer }) => buffer) });
};
