// The reference for token ids: npm's `tokenizers`, Hugging Face's own code.
//
//   node tokenizers.js PACKAGE encode TOKENIZER.json OUT TEXT...   OUT/NAME.ids (32-bit numbers) and
//                                                    OUT/NAME.text (decoded), NAME.txt being the text
//   node tokenizers.js PACKAGE make-unigram OUT.json   a Unigram model with what T5 and XLM-R have around it
const fs = require("fs");
const path = require("path");
const [folder, what, file, ...rest] = process.argv.slice(2);
const t = require(path.resolve(folder));

async function encode(out, texts) {
    const tokenizer = t.Tokenizer.fromFile(file);
    tokenizer.disableTruncation();
    tokenizer.disablePadding();
    for (const name of texts) {
        const ids = (await tokenizer.encode(fs.readFileSync(name, "utf8"))).getIds();
        const to = path.join(out, path.basename(name, ".txt"));
        fs.writeFileSync(to + ".ids", Buffer.from(Int32Array.from(ids).buffer));
        fs.writeFileSync(to + ".text", await tokenizer.decode(ids, true));
    }
}

// Words of our documents and their parts, with scores from how often they are there; nothing for many
// characters, so that unknown ones are met.
function makeUnigram() {
    const docs = path.join(__dirname, "../../docs");
    const count = new Map();
    const pages = fs.readdirSync(docs).filter((f) => f.endsWith(".md")).sort();
    for (const page of pages)
        for (const word of fs.readFileSync(path.join(docs, page), "utf8").normalize("NFKC").split(/\s+/)) {
            const chars = Array.from("\u2581" + word);
            for (let i = 0; i < chars.length; i++)
                for (let n = 1; n <= 8 && i + n <= chars.length; n++) {
                    const piece = chars.slice(i, i + n).join("");
                    count.set(piece, (count.get(piece) || 0) + n);
                }
        }
    const pieces = [...count].filter(([p]) => p !== "<unk>").sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    const most = pieces.slice(0, 8000);
    const vocab = [["<unk>", 0], ["<s>", 0], ["</s>", 0]];
    // Of few digits: the reference reads longer ones up to a unit in the last place off, which decides between equal paths.
    for (const [piece, n] of most) vocab.push([piece, Math.round(1e6 * (Math.log(n / most[0][1]) - 1)) / 1e6]);
    const tokenizer = new t.Tokenizer(t.Unigram.init(vocab, { unkId: 0, byteFallback: false }));
    tokenizer.setNormalizer(t.sequenceNormalizer([t.nmt(), t.nfkcNormalizer(), t.replace(" {2,}", " ")]));
    tokenizer.setPreTokenizer(t.metaspacePreTokenizer("\u2581", "always", true));
    tokenizer.setDecoder(t.metaspaceDecoder("\u2581", "always", true));
    tokenizer.addSpecialTokens(["<s>", "</s>"]);
    tokenizer.setPostProcessor(t.templateProcessing("<s> $A </s>", null, [["<s>", 1], ["</s>", 2]]));
    tokenizer.save(file);
}

if (what === "make-unigram") makeUnigram();
else encode(rest[0], rest.slice(1));
