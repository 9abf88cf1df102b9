/* certificate.c - what a certificate (docs/format.md, "Certificates") says about files and inputs; a
 * chain is checked link by link and as a whole. A length plan's run is pare's own program: from the
 * numbers of one run, which `pare verify --unpack` writes, it is checked that it equals exact attention. */
#include "check.h"

enum { MOST_LINKS = 100 };

/* ---- files ----------------------------------------------------------------------------------- */

/* The hashes of the tensors' numbers. */
static void check_tensors(const char *what, const cJSON *claimed, arrays own)
{
    const char *bad = length_of(claimed) != own.n ? "their number" : NULL;
    for (const array *t = own.list; t < own.list + own.n; t++)
        if (!is_text(find(claimed, t->name), t->hash)) bad = t->name;
    state_unless(bad ? words("%s is not the certificate's", bad) : NULL, what,
                 words("the hashes of all %zu tensors are the certificate's", own.n));
}

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
        if (!now->o->unpacked) continue;
        if (n == 1 && !file_exists(at)) at = path;
        if (strstr(f->string, "..") || !file_exists(at)) {
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
    if (absent && !bad)
        state(NOT_CHECKED, what, "%s is not there", absent);
    else if (bad || now->o->unpacked)
        state_unless(bad ? words("%s is not the certificate's", bad) : NULL, what,
                     words("the files at %s have the certificate's hashes", path));
}

static model check_model(const cJSON *json, int s, const char *folder, const char *unpacked)
{
    const char *const side = s ? "output" : "input";
    const cJSON *const o = get(json, side);
    const char *path = beside(folder, get_text(o, "path"));
    if (now->o->moved[s] && !*now->link) path = now->o->moved[s];
    check_list(words("%s.files", side), o, path);
    if (unpacked) path = words("%s/%s.safetensors", unpacked, side);
    const model m = read_model(path, unpacked ? read_file(path) : read_checked(side, path, o));
    check_equal(words("%s.architecture", side), m.hash, get_text(o, "architecture"),
                "the canonical architecture");
    check_tensors(words("%s.tensors", side), find(o, "tensors"), m.tensors);
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
    const size_t split = get_count(data, "split");
    if (same(kind, "file"))
        return n == 1 ? words("the one input in the data file (split %zu)", split)
                      : words("the %zu inputs in the data file (split %zu)", n, split);
    must(same(kind, "part"), "data.kind: is not random, file or part");
    const size_t tokens = get_count(data, "tokens"),
                 first = find(data, "first") ? get_count(data, "first") : 0;
    const char *const which =
        find(data, "numbers")
            ? n == 1 ? "one input of the data file, drawn by the seed"
                     : words("each of %zu inputs of the data file, drawn by the seed", n)
        : n == 1 ? words("input %zu of the data file", first)
                 : words("each of inputs %zu to %zu of the data file", first, first + n - 1);
    return tokens ? words("%s, its first %zu tokens at most", which, tokens) : which;
}

/* A list of hashes, which is sorted. */
static const char **read_hashes(const cJSON *o, size_t *tokens, size_t *n)
{
    const cJSON *const list = get_list(o, "inputs");
    const char **const v = take(length_of(list) + 1, sizeof *v);
    *tokens = get_count(o, "tokens");
    *n = 0;
    for (const cJSON *h = list->child; h; h = h->next) {
        must(cJSON_IsString(h), "data: a hash is no text");
        v[(*n)++] = h->valuestring;
    }
    return v;
}

/* The hashes of the held-out inputs one by one; none of them is among those fitted to. */
static void check_heldout(const certificate *c)
{
    const cJSON *const word = get(c->data, "writers_word");
    const char *bad = NULL, **const own = take(c->set.n, sizeof *own);
    size_t tokens[2], n[2];
    const char **const held = read_hashes(get(c->data, "heldout"), &tokens[0], &n[0]);
    const char **const fitted = read_hashes(get(word, "fitted"), &tokens[1], &n[1]);
    for (size_t i = 0; i < c->set.n; i++) {
        own[i] = hash_inputs(&c->set.list[i], 1, tokens[0]);
        if (c->set.list[i].continues) bad = "an input is a window that begins amid a text";
    }
    qsort(own, c->set.n, sizeof *own, by_text);
    if (tokens[0] != tokens[1]) bad = "fitted and held-out inputs are cut differently";
    if (get_count(word, "candidates") != 1) bad = "they decided between several cuts";
    if (n[0] != c->set.n) bad = "their number is not that of the inputs";
    for (size_t i = 0; !bad && i < c->set.n; i++)
        if (!same(own[i], held[i])) bad = "a hash is not that of an input";
    for (size_t i = 0; !bad && i < n[1]; i++)
        if (bsearch(&fitted[i], own, c->set.n, sizeof *own, by_text))
            bad = "the cut was fitted to one of them";
    state_unless(bad, "data.heldout",
                 "the held-out inputs are the given ones, and no fitted one is among them");
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

static bool same_texts(const cJSON *a, const cJSON *b, const char *key)
{
    const cJSON *const v = find(a, key);
    return cJSON_IsString(v) && is_text(find(b, key), v->valuestring);
}

static bool same_model(const cJSON *a, const cJSON *b)
{
    return same_texts(a, b, "sha256") && same_texts(a, b, "architecture");
}

/* Each link begins where the one before it ends, and is about the same inputs. */
static void check_chain(const cJSON *json, const cJSON *links, const char *folder)
{
    const cJSON *at = find(json, "input"), *link;
    const char *bad = NULL;
    size_t i = 0;
    cJSON_ArrayForEach(link, links)
    {
        if (!same_model(at, find(link, "input"))) bad = "a link does not begin where it must";
        if (!same_texts(find(json, "data"), find(link, "data"), "inputs_sha256"))
            bad = "a link is about other inputs";
        at = find(link, "output");
    }
    if (!same_model(at, find(json, "output"))) bad = "the last link ends elsewhere";
    state_unless(bad, "chain", "the links fit");
    cJSON_ArrayForEach(link, links)
    {
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
        state(NOT_CHECKED, words("%s", what), "%s is not there", path);
}

/* The member NAME.LETTER: n rows, of numbers that are exact balls. */
static balls member(arrays z, const char *name, const char *letter, size_t n)
{
    const array *const a = get_array(z, words("%s.%s", name, letter), 2, n, 0, false);
    const balls out = new_balls(n, a->shape[1]);
    for (size_t i = 0; i < a->count; i++) arb_set_d(out.v + i, a->v[i]);
    return out;
}

/* |y - exact| of one head on the rows of the certificate, into `most`. */
static void head_error(const evaluation *e, arrays z, const array *rows, const char *name,
                       arb_t most)
{
    chunk *const mark = now->memory;
    const size_t n = e->in->tokens;
    const array *const scale = find_array(z, words("%s.scale", name));
    must(scale && scale->count == 1, "attention.npz: a scale is missing");
    const head h = {member(z, name, "q", n), member(z, name, "k", n), member(z, name, "v", n),
                    scale->v[0]};
    const balls y = member(z, name, "y", n), exact = new_balls(1, y.d);
    uint32_t *const keys = take(n, sizeof *keys);
    must(h.q.d == h.k.d && h.v.d == y.d, "attention.npz: other widths");
    for (size_t i = 0; i < rows->count; i++) {
        must(rows->v[i] >= 0 && rows->v[i] < (double)n, "attention.npz: rows out of range");
        const size_t row = (size_t)rows->v[i];
        _arb_vec_neg(exact.v, row_of(y, row), (slong)y.d);
        attend(exact.v, &h, row, keys, visible(e, row, keys));
        for (size_t c = 0; c < y.d; c++) {
            arb_abs(exact.v + c, exact.v + c);
            arb_max(most, most, exact.v + c, bits);
        }
    }
    release(mark, NULL);
}

static void check_attention(model *m, double proven, double measured)
{
    const char *const folder = now->o->unpacked;
    m->context = 0; /* plans may be longer */
    const inputs set = load_unpacked(m, folder, 1);
    const arrays z = read_npz("attention.npz", read_file(words("%s/attention.npz", folder)));
    const evaluation e = begin_evaluation(m, set.list);
    const array *const rows = get_array(z, "rows", 1, 0, 0, true);
    arb_ptr most = take_balls(1);
    size_t heads = 0;
    for (size_t l = 0; l < count_blocks(m); l++) {
        const size_t n = length_of(find(part_of(m, l, false).o, "heads"));
        for (size_t h = 0; h < n; h++, heads++)
            head_error(&e, z, rows, words("%zu.%zu", l, h), most);
    }
    const interval off = interval_of(most);
    state(off.high <= proven ? CONFIRMED
          : off.low > proven ? REFUTED
                             : NOT_REFUTED,
          words("proven %.9g", proven),
          "the run is %.9g from exact attention on %zu rows of %zu heads", off.high, rows->count,
          heads);
    state(off.high <= 4 * measured ? CONFIRMED : REFUTED, words("measured %.9g", measured),
          "of another run at most 4 times as much is allowed");
}

static void check_length(const cJSON *root, const char *folder)
{
    const char *const unpacked = now->o->unpacked;
    const cJSON *const o = get(root, "input");
    const double proven = get_number(root, "proven"), seen = get_number(root, "measured");
    must(get_count(root, "pare_length") == 2, "certificate: is not of schema 2");
    check_file("plan", folder, get(root, "plan"));
    if (cJSON_IsObject(find(root, "data"))) check_file("data", folder, find(root, "data"));
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

/* unpacked.json must be about this certificate. */
static void check_unpacked(bytes text)
{
    const bytes file = read_file(words("%s/unpacked.json", now->o->unpacked));
    const cJSON *const root = parse_json("unpacked.json", file.v, file.n);
    must(is_text(find(find(root, "certificate"), "sha256"), sha256_of(text.v, text.n)),
         "%s: is not unpacked from this certificate", now->o->unpacked);
    state(NOT_CHECKED, "unpacked", "pare made %s: this step is trusted where no hash covers it",
          now->o->unpacked);
}

static void check_whole(void *with)
{
    bits = 128;
    const char *const path = *(const char *const *)with, *const slash = strrchr(path, '/');
    const int length = slash ? (int)(slash - path) + (slash == path) : 0;
    const char *const folder = words("%.*s", length, path);
    const bytes text = read_file(path);
    const cJSON *const root = parse_json(path, text.v, text.n);
    if (now->o->unpacked) check_unpacked(text);
    if (find(root, "pare_length")) {
        check_length(root, folder);
        return;
    }
    const cJSON *const links = get_list(root, "chain");
    const bool chain = same(get_text(get(root, "reduction"), "name"), "chain");
    must(chain == (links->child != NULL) && length_of(links) <= MOST_LINKS,
         "chain: has links exactly where the reduction is chain");
    check_one(root, folder, now->o->unpacked);
    if (chain) check_chain(root, links, folder);
}

bool check_certificate(job *j, const char *path)
{
    return attempt(j, check_whole, &path);
}
