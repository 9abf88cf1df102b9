/* certificate.c - what a certificate (docs/format.md, "Certificates") says about files and inputs; a
 * chain is checked link by link and as a whole. A length plan's run is pare's own program: from the
 * numbers of one run, which `pare verify --unpack` writes, it is checked that it equals exact attention. */
#include "check.h"

enum { MOST_LINKS = 100 };

/* ---- files ----------------------------------------------------------------------------------- */

/* `sha256` is the hash of the one file, or of the sorted lines "HASH  NAME". Of an unpacked folder or
 * ticket the files themselves are hashed, where they are found. */
static void check_list(const char *what, const cJSON *o, const char *path)
{
    const cJSON *const files = get(o, "files");
    const size_t n = length_of(files);
    const char **const line = take(n + 1, sizeof *line), *bad = NULL, *absent = NULL;
    SHA256_CTX h;
    size_t i = 0;
    must(cJSON_IsObject(files) && n > 0, "%s: names no file", what);
    for (const cJSON *f = files->child; f; f = f->next) {
        const char *at = words("%s/%s", path, f->string);
        line[i++] = words("%s  %s\n", get_text(files, f->string), f->string);
        if (n == 1 && now->o->unpacked && !file_exists(at)) at = path;
        if (strstr(f->string, "..") || !now->o->unpacked || !file_exists(at)) {
            absent = at;
            continue;
        }
        const bytes file = read_file(at);
        if (!is_text(f, sha256_of(file.v, file.n))) bad = at;
    }
    qsort(line, n, sizeof *line, by_text);
    SHA256_Init(&h);
    for (i = 0; i < n; i++) hash_text(&h, line[i]);
    if (!same(n == 1 ? files->child->valuestring : hash_end(&h), get_text(o, "sha256")))
        bad = "the list of them";
    if (bad || !absent)
        state_but(what, words("the files at %s have the certificate's hashes", path), bad);
    else if (now->o->unpacked)
        state(NOT_CHECKED, what, "%s is not there", absent);
}

static model check_model(const cJSON *json, int s, const char *folder, const char *unpacked)
{
    const char *const side = s ? "output" : "input";
    const cJSON *const o = get(json, side), *const tensors = get(o, "tensors");
    const char *path = beside(folder, get_text(o, "path"));
    if (now->o->moved[s] && !*now->link) path = now->o->moved[s];
    check_list(words("%s.files", side), o, path);
    if (unpacked) path = words("%s/%s.safetensors", unpacked, side);
    const model m = read_model(path, unpacked ? read_file(path) : read_checked(side, path, o));
    const char *bad = length_of(tensors) != m.tensors.n ? "their number" : NULL;
    check_equal(words("%s.architecture", side), m.hash, get_text(o, "architecture"),
                "the canonical architecture");
    for (const array *t = m.tensors.list; t->name; t++)
        if (!is_text(find(tensors, t->name), t->hash)) bad = t->name;
    state_but(words("%s.tensors", side),
              words("the hashes of all %zu tensors are the certificate's", m.tensors.n), bad);
    return m;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* headline.domain, as docs/format.md makes it of `data`. */
static const char *domain_words(const cJSON *data)
{
    const char *const kind = get_text(data, "kind");
    const size_t n = get_count(data, "count");
    if (same(kind, "random"))
        return words("the %zu random inputs of %zu tokens drawn from the seed", n,
                     get_count(data, "tokens"));
    const char *const many = n == 1 ? "one input" : words("%zu inputs", n);
    if (same(kind, "file"))
        return words("the %s in the data file (split %zu)", many, get_count(data, "split"));
    must(same(kind, "part"), "data.kind: is not random, file or part");
    const bool drawn = find(data, "numbers");
    const size_t first = drawn ? 0 : get_count(data, "first"), tokens = get_count(data, "tokens");
    const char *const which = drawn    ? words("%s%s", n == 1 ? "" : "each of ", many)
                              : n == 1 ? words("input %zu", first)
                                       : words("each of inputs %zu to %zu", first, first + n - 1);
    return words("%s of the data file%s%s", which, drawn ? ", drawn by the seed" : "",
                 tokens ? words(", its first %zu tokens at most", tokens) : "");
}

/* The hashes of the held-out inputs one by one, sorted; none of them is among those fitted to. */
static void check_heldout(const certificate *c)
{
    const cJSON *const word = get(c->data, "writers_word"), *const fitted = get(word, "fitted");
    const cJSON *const heldout = get(c->data, "heldout"), *h = get_list(heldout, "inputs")->child;
    const size_t n = c->set.n, tokens = get_count(heldout, "tokens");
    const char *bad = NULL, **const own = take(n, sizeof *own);
    for (size_t i = 0; i < n; i++) {
        own[i] = hash_inputs(&c->set.list[i], 1, tokens);
        if (c->set.list[i].continues) bad = "one that begins amid a text";
    }
    qsort(own, n, sizeof *own, by_text);
    if (get_count(fitted, "tokens") != tokens) bad = "those that are cut to another length";
    if (get_count(word, "candidates") != 1) bad = "the cuts between which they decided";
    if (length_of(find(heldout, "inputs")) != n) bad = "their number";
    for (size_t i = 0; h && i < n; h = h->next, i++)
        if (!is_text(h, own[i])) bad = "the hash of an input";
    for (h = get_list(fitted, "inputs")->child; h; h = h->next) {
        must(cJSON_IsString(h), "data: a hash is no text");
        if (bsearch(&h->valuestring, own, n, sizeof *own, by_text)) bad = "one of those";
    }
    state_but("data.heldout", "they are the given inputs, and none that the cut was fitted to",
              bad);
}

static inputs check_inputs(const certificate *c, const char *folder, const char *unpacked)
{
    const cJSON *const data = c->data;
    const model *const m = &c->model[0];
    const uint64_t seed = get_seed(get(c->json, "reduction"), "seed");
    const size_t count = get_count(data, "count");
    const char *path = find(data, "path") ? beside(folder, get_text(data, "path")) : "";
    if (now->o->moved[2]) path = now->o->moved[2];
    const inputs set =
        unpacked ? load_unpacked(m, unpacked, count) : load_inputs(m, data, seed, path);
    must(set.n > 0, "no input in the data");
    for (size_t i = 0; i < set.n; i++) must_fit(m, &set.list[i]);
    if (set.n != count) state(REFUTED, "data.count", "there are %zu inputs", set.n);
    check_equal("data.inputs_sha256", hash_inputs(set.list, set.n, 0),
                get_text(data, "inputs_sha256"), words("the list of %zu inputs", set.n));
    return set;
}

/* ---- one certificate, and chains ------------------------------------------------------------- */

static void check_one(const cJSON *json, const char *folder, const char *unpacked)
{
    certificate c = {.json = json, .data = get(json, "data")};
    must(get_count(json, "pare") == 2, "certificate: this program reads schema 2 only");
    c.domain = domain_words(c.data);
    if (!is_text(find(get(json, "headline"), "domain"), c.domain))
        state(REFUTED, "headline.domain", "it is not that of data");
    for (int s = 0; s < 2; s++) c.model[s] = check_model(json, s, folder, unpacked);
    c.set = check_inputs(&c, folder, unpacked);
    if (find(c.data, "heldout") || find(c.data, "writers_word")) check_heldout(&c);
    check_claims(&c);
}

static bool same_model(const cJSON *a, const cJSON *b)
{
    return cJSON_Compare(find(a, "sha256"), find(b, "sha256"), true) &&
           cJSON_Compare(find(a, "architecture"), find(b, "architecture"), true);
}

/* Each link begins where the one before it ends, and is about the same inputs. */
static void check_chain(const cJSON *json, const cJSON *links, const char *folder)
{
    const cJSON *at = find(json, "input"), *const own = find(find(json, "data"), "inputs_sha256");
    const char *bad = NULL;
    size_t i = 0;
    for (const cJSON *link = links->child; link; link = link->next) {
        if (!same_model(at, find(link, "input"))) bad = "the beginning of one";
        if (!cJSON_Compare(own, find(find(link, "data"), "inputs_sha256"), true))
            bad = "the inputs of one";
        at = find(link, "output");
    }
    if (!same_model(at, find(json, "output"))) bad = "the end of the last";
    state_but("chain", "the links fit", bad);
    for (const cJSON *link = links->child; link; link = link->next) {
        snprintf(now->link, sizeof now->link, "link %zu: ", i++);
        must(!get_list(link, "chain")->child, "chain: a link is a chain");
        check_one(link, folder, now->o->unpacked ? words("%s/%zu", now->o->unpacked, i) : NULL);
    }
}

/* ---- length plans ---------------------------------------------------------------------------- */

static void check_file(const char *what, const char *folder, const cJSON *o)
{
    const char *const path = beside(folder, get_text(o, "path"));
    if (file_exists(path))
        read_checked(what, path, o);
    else
        state(NOT_CHECKED, what, "%s is not there", path);
}

/* The member NAME.LETTER: n rows, of numbers that are exact balls. */
static balls member(arrays z, const char *name, const char *letter, size_t n)
{
    const array *const a = get_array(z, words("%s.%s", name, letter), 2, n, 0, false);
    return balls_of(a->v, n, a->shape[1]);
}

/* |y - exact| of one head on the rows of the certificate, joined to `most`. */
static void head_error(const evaluation *e, arrays z, const array *rows, const char *name,
                       interval *most)
{
    chunk *const mark = now->memory;
    const size_t n = e->in->tokens;
    const array *const scale = get_array(z, words("%s.scale", name), 1, 1, 0, false);
    const head h = {member(z, name, "q", n), member(z, name, "k", n), member(z, name, "v", n),
                    scale->v[0]};
    const balls y = member(z, name, "y", n);
    uint32_t *const keys = take(n, sizeof *keys);
    must(h.q.d == h.k.d && h.v.d == y.d, "attention.npz: other widths");
    for (size_t i = 0; i < rows->count; i++) {
        must(rows->v[i] >= 0 && rows->v[i] < (double)n, "attention.npz: rows out of range");
        const size_t row = (size_t)rows->v[i];
        arb_ptr off = take_balls(y.d);
        _arb_vec_neg(off, row_of(y, row), (slong)y.d);
        attend(off, &h, row, keys, visible(e, row, keys));
        for (size_t c = 0; c < y.d; c++) note(most, DIFFERENCE, off + c);
    }
    release(mark, NULL, NULL);
}

static void check_attention(model *m, double proven, double measured)
{
    const char *const folder = now->o->unpacked;
    m->context = 0; /* plans may be longer */
    const inputs set = load_unpacked(m, folder, 1);
    const arrays z = read_npz("attention.npz", read_file(words("%s/attention.npz", folder)));
    const evaluation e = begin_evaluation(m, set.list);
    const array *const rows = get_array(z, "rows", 1, 0, 0, true);
    interval off = {0, 0};
    size_t all = 0;
    for (size_t l = 0; l < m->blocks; l++) {
        const size_t n = length_of(find(part_of(m, l, false).o, "heads"));
        for (size_t h = 0; h < n; h++, all++) head_error(&e, z, rows, words("%zu.%zu", l, h), &off);
    }
    const verdict v = off.high <= proven ? CONFIRMED : off.low > proven ? REFUTED : NOT_REFUTED;
    state(v, words("proven %.9g", proven),
          "the run is %.9g from exact attention on %zu rows of %zu heads", off.high, rows->count,
          all);
    state(off.high <= 4 * measured ? CONFIRMED : REFUTED, words("measured %.9g", measured),
          "of another run at most 4 times as much is allowed");
}

static void check_length(const cJSON *root, const char *folder)
{
    const char *const unpacked = now->o->unpacked;
    const cJSON *const o = get(root, "input"), *const data = find(root, "data");
    const double proven = get_number(root, "proven"), seen = get_number(root, "measured");
    must(get_count(root, "pare_length") == 2, "certificate: is not of schema 2");
    check_file("plan", folder, get(root, "plan"));
    if (cJSON_IsObject(data)) check_file("data", folder, data);
    if (!unpacked) check_file("input", folder, o);
    const char *const at =
        unpacked ? words("%s/input.safetensors", unpacked) : beside(folder, get_text(o, "path"));
    model m = read_model(at, read_file(at));
    check_equal("input.architecture", m.hash, get_text(o, "architecture"), at);
    state(seen <= proven ? CONFIRMED : REFUTED, "measured and proven",
          "%.9g was measured, %.9g proven", seen, proven);
    state(NOT_CHECKED, "run", "calls, rounds and lmax are of pare's own run");
    state(NOT_CHECKED, "apriori", "it is about every run of the plan");
    if (unpacked)
        check_attention(&m, proven, seen);
    else
        state(NOT_CHECKED, words("proven %.9g", proven),
              "it needs the numbers of a run: pare verify CERT --unpack DIR, then --unpacked DIR");
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void check_whole(void *with)
{
    bits = 128;
    const char *const path = *(const char *const *)with, *const slash = strrchr(path, '/');
    const char *const folder =
        words("%.*s", slash ? (int)(slash - path) + (slash == path) : 0, path);
    const char *const unpacked = now->o->unpacked;
    const bytes text = read_file(path);
    const cJSON *const root = parse_json(path, text.v, text.n);
    if (unpacked) { /* of this certificate */
        const bytes file = read_file(words("%s/unpacked.json", unpacked));
        const cJSON *const about = find(parse_json(unpacked, file.v, file.n), "certificate");
        must(is_text(find(about, "sha256"), sha256_of(text.v, text.n)),
             "%s: is not unpacked from this certificate", unpacked);
        state(NOT_CHECKED, "unpacked", "pare made %s: this step is trusted where no hash covers it",
              unpacked);
    }
    if (find(root, "pare_length")) {
        check_length(root, folder);
        return;
    }
    const cJSON *const links = get_list(root, "chain");
    const bool chain = same(get_text(get(root, "reduction"), "name"), "chain");
    must(chain == (links->child != NULL) && length_of(links) <= MOST_LINKS,
         "chain: has links exactly where the reduction is chain");
    check_one(root, folder, unpacked);
    if (chain) check_chain(root, links, folder);
}

bool check_certificate(job *j, const char *path)
{
    return attempt(j, check_whole, &path);
}
