/** Opening files: dropped, chosen or pasted. */
import { findColumns, parseCsv, tableData } from "./csv.js";
import { byId, dialogById, inputById, make, onClick, setText } from "./dom.js";
import { expect, messageOf } from "./expect.js";
import { readModel } from "./model_reader.js";
import { LIMITS } from "./settings.js";

const MOST_BYTES = 20e6;

export class Imports {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		this.dialog = dialogById("import-dialog");
		const file = inputById("file");
		onClick("import-button", () => this.open());
		onClick("csv-button", () => this.open());
		onClick("choose-file", () => file.click());
		onClick("use-text", () => this.attempt(() => this.readCsv(inputById("csv-text").value)));
		file.addEventListener("change", () => {
			this.readFile(file.files?.[0]);
			file.value = "";
		});
		for (const type of ["dragover", "dragleave", "drop"]) {
			document.addEventListener(type, (event) => {
				const { dataTransfer } = /** @type {DragEvent} */ (event);
				if (!dataTransfer?.types.includes("Files")) return;
				event.preventDefault();
				byId("drop").hidden = type !== "dragover";
				if (type === "drop") this.readFile(dataTransfer.files[0]);
			});
		}
	}

	open() {
		byId("import-start").hidden = false;
		byId("import-columns").hidden = true;
		setText(byId("import-error"), "");
		if (!this.dialog.open) this.dialog.showModal();
	}

	/** @param {File} [file] */
	readFile(file) {
		this.attempt(async () => {
			if (!file) return;
			expect(file.size <= MOST_BYTES, `${file.name} is larger than 20 MB.`);
			if (!file.name.endsWith(".quadric")) return this.readCsv(await file.text());
			this.app.useModel(await readModel(new Uint8Array(await file.arrayBuffer())), file.name);
			this.dialog.close();
		});
	}

	/** Shows the message of an error in the dialog. @param {() => void | Promise<void>} action */
	async attempt(action) {
		try {
			await action();
		} catch (error) {
			this.open();
			setText(byId("import-error"), messageOf(error));
		}
	}

	/** Shows the choice of columns. @param {string} text */
	readCsv(text) {
		const table = parseCsv(text);
		const { numeric, possible, guess, isNumber } = findColumns(table);
		const target = `one with 2 to ${LIMITS.classes} different values as the class`;
		const fits = numeric.length >= 2 && (possible.length > 0 || numeric.length > 2);
		const needed = `The file needs two columns of numbers as features, and ${target}`;
		expect(fits, `${needed}, or a third column of numbers as the target.`);
		const chosen = ["first", "second", "target"].map((name, i) => {
			const select = make("select", { id: `csv-${name}` });
			const add = (/** @type {number[]} */ columns, kind = "", remark = "") => {
				for (const one of columns) {
					select.append(make("option", { value: one + kind }, table.header[one] + remark));
				}
			};
			add(i < 2 ? numeric : possible);
			if (i === 2) add(numeric, "n", " (a number)");
			select.value = `${guess[i]}${i === 2 && isNumber ? "n" : ""}`;
			return select;
		});
		const labels = ["First feature", "Second feature", "Class or target"];
		const fields = chosen.map((select, i) => make("label", { class: "field" }, labels[i], select));
		const click = () =>
			this.attempt(() => {
				const [a, b, c] = chosen.map((select) => parseInt(select.value));
				expect(a !== b, "The two features are the same column; choose another one.");
				const regression = chosen[2].value.endsWith("n");
				const apart = !regression || (a !== c && b !== c);
				expect(apart, "The target is also a feature; choose another one.");
				const { skipped, ...data } = tableData(table, [a, b], c, regression);
				this.app.useData(data, skipped ? `Left out because of empty values: ${skipped} rows.` : "");
				this.dialog.close();
			});
		const attributes = { type: "button", class: "primary", id: "csv-use", click };
		const use = make("button", attributes, "Use these columns");
		this.open();
		byId("import-start").hidden = true;
		byId("import-columns").hidden = false;
		byId("import-columns").replaceChildren(`${table.rows.length} rows.`, ...fields, use);
		use.focus();
	}
}
