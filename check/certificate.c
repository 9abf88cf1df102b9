/* certificate.c - reads a certificate (docs/format.md, "Certificates") and checks what it says about
 * files and inputs; a chain is checked link by link and as a whole. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CLAIMS = 10000, MOST_LINKS = 100 };

static const char *const section_names[SECTIONS] = {"hypotheses", "theorems", "observations",
                                                    "evidence", "paper"};

/* ---- claims ---------------------------------------------------------------------------------- */

static size_t length_of_word(const char *s)
{
    return strcspn(s, " ");
}

/* Words that the kind determines must be those of the kind. */
static void same_words(job *j, const cJSON *o, const char *what, const char *key,
                       const char *expected)
{
    const char *const said = get_text(j, o, what, key);
    if (!j->t.code && strcmp(said, expected) != 0)
        fail(j, NOT_TRUE, "%s: its %s is not that of the kind", what, key);
}

/* All other parameters are numbers. */
static bool is_text(const char *parameter_name)
{
    static const char *const names[] = {"why", "by", "reduction", "part", "ball_norm", "point"};
    bool text = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        text = text || strcmp(names[i], parameter_name) == 0;
    return text;
}

/* Exactly the parameters of the row. `what` becomes "kind name value ...", for people. */
static const char *read_parameters(job *j, const char *row, const cJSON *parameters)
{
    const char *what = words(j, "%.*s", (int)length_of_word(row), row);
    const char *name = row + length_of_word(row);
    int expected = 0;
    for (; *name && !j->t.code; name += length_of_word(name)) {
        name++;
        const char *const key = words(j, "%.*s", (int)length_of_word(name), name);
        const cJSON *const v = get(j, parameters, row, key);
        const bool text = is_text(key);
        if (!text && cJSON_IsNumber(v) && isfinite(v->valuedouble))
            what = words(j, "%s %s %.9g", what, key, v->valuedouble);
        else if (text && cJSON_IsString(v) && *v->valuestring)
            what = words(j, "%s %s \"%.100s\"", what, key, v->valuestring);
        else
            fail(j, UNREADABLE, "%s: parameter %s is missing or of another type", what, key);
        expected++;
    }
    if (!cJSON_IsObject(parameters) || cJSON_GetArraySize(parameters) != expected)
        fail(j, UNREADABLE, "%s: parameters that are not those of the kind", what);
    return what;
}

/* A value or limit that the kind has; null where it has none. */
static double read_value(job *j, const cJSON *o, const char *what, const char *key, bool there)
{
    if (there) return get_number(j, o, what, key);
    if (!cJSON_IsNull(get(j, o, what, key))) fail(j, UNREADABLE, "%s.%s: is not null", what, key);
    return NAN;
}

static void read_theorem(job *j, const kind_row *row, const cJSON *o, claim *c)
{
    const bool drawn = strncmp(c->kind, "new_input", 9) == 0;
    c->lower = (row->has & LOWER) != 0;
    c->bound = get_number(j, o, c->what, "bound");
    c->domain = get_text(j, o, c->what, "domain");
    same_words(j, o, c->what, "side", row->has & LOWER ? "lower" : "upper");
    same_words(j, o, c->what, "norm", row->norm);
    c->probability = drawn ? get_number(j, o, c->what, "probability") : 1;
    if (!drawn && find(o, "probability"))
        fail(j, UNREADABLE, "%s.probability: unknown key", c->what);
    if (!(c->bound >= 0)) fail(j, NOT_TRUE, "%s: a bound below 0", c->what);
    if ((row->limit > 0 && c->bound > row->limit) ||
        (drawn && !(c->probability > 0 && c->probability < 1)))
        fail(j, UNREADABLE, "%s: a bound or a probability that cannot be", c->what);
    c->what = words(j, "%s: %.9g", c->what, c->bound);
}

static void read_claim(job *j, section s, const cJSON *o, claim *c)
{
    static const char *const keys[SECTIONS][9] = {
        {"kind", "parameters", "holds", "value", "limit", "sentence"},
        {"kind", "parameters", "side", "bound", "norm", "domain", "sentence", "probability"},
        {"kind", "parameters", "value", "tolerance", "sentence"},
        {"kind", "parameters", "value", "limit", "sentence"},
        {"kind", "parameters", "value", "sound", "sentence"}};
    if (!only_keys(j, o, section_names[s], keys[s])) return;
    c->kind = get_text(j, o, section_names[s], "kind");
    const kind_row *const row = find_kind(s, c->kind);
    if (!row) fail(j, UNREADABLE, "%s: unknown kind \"%.60s\"", section_names[s], c->kind);
    c->parameters = get(j, o, section_names[s], "parameters");
    if (j->t.code) return;
    c->what = read_parameters(j, row->kind, c->parameters);
    same_words(j, o, c->what, "sentence", sentence_of(j, row, c->parameters));
    c->value = s == THEOREMS ? NAN : read_value(j, o, c->what, "value", row->has & VALUE);
    c->limit = NAN;
    if (s == HYPOTHESES || s == EVIDENCE)
        c->limit = read_value(j, o, c->what, "limit", row->has & LIMIT);
    if (s == THEOREMS) read_theorem(j, row, o, c);
    if (s == OBSERVATIONS && get_number(j, o, c->what, "tolerance") != row->limit)
        fail(j, NOT_TRUE, "%s: its tolerance is not that of the kind", c->what);
    if (s == PAPER && !cJSON_IsFalse(get(j, o, c->what, "sound")))
        fail(j, NOT_TRUE, "%s: no printed formula is sound", c->what);
    const cJSON *const holds = s == HYPOTHESES ? get(j, o, c->what, "holds") : NULL;
    if (holds && !cJSON_IsBool(holds) && !cJSON_IsNull(holds))
        fail(j, UNREADABLE, "%s.holds: is not true, false or null", c->what);
    c->holds = cJSON_IsNull(holds) ? -1 : cJSON_IsTrue(holds);
}

/* Of one kind and parameters, in sorted order: equal neighbors are one claim made twice. */
static int by_claim(const void *a, const void *b)
{
    const claim *const *const x = a, *const *const y = b;
    const int kind = strcmp((*x)->kind, (*y)->kind);
    if (kind) return kind;
    for (const cJSON *v = (*x)->parameters->child; v; v = v->next) {
        const cJSON *const w = find((*y)->parameters, v->string);
        if (cJSON_IsNumber(v) && v->valuedouble != w->valuedouble)
            return v->valuedouble < w->valuedouble ? -1 : 1;
        const int text = cJSON_IsString(v) ? strcmp(v->valuestring, w->valuestring) : 0;
        if (text) return text;
    }
    return 0;
}

static void no_claim_twice(job *j, section s, const certificate *c)
{
    const size_t n = c->n[s];
    const claim **const list = take(j, n + 1, sizeof *list);
    for (size_t i = 0; list && i < n; i++) list[i] = &c->claims[s][i];
    if (!list || j->t.code) return;
    qsort(list, n, sizeof *list, by_claim);
    for (size_t i = 1; i < n; i++)
        if (by_claim(&list[i - 1], &list[i]) == 0)
            fail(j, UNREADABLE, "%s: is there twice", list[i]->what);
}

static void read_section(job *j, section s, const cJSON *root, certificate *c)
{
    const cJSON *const list = get(j, root, "certificate", section_names[s]);
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > MOST_CLAIMS)
        fail(j, UNREADABLE, "%s: is not an array of at most %d claims", section_names[s],
             MOST_CLAIMS);
    if (j->t.code) return;
    c->claims[s] = take(j, (size_t)cJSON_GetArraySize(list) + 1, sizeof *c->claims[s]);
    for (const cJSON *o = list->child; c->claims[s] && o && !j->t.code; o = o->next)
        read_claim(j, s, o, &c->claims[s][c->n[s]++]);
    if (!j->t.code) no_claim_twice(j, s, c);
}

/* ---- data ------------------------------------------------------------------------------------ */

static const char **read_hashes(job *j, const cJSON *o, const char *where, size_t *tokens,
                                size_t *n)
{
    static const char *const keys[] = {"tokens", "inputs", NULL};
    if (!only_keys(j, o, where, keys)) return NULL;
    *tokens = get_count(j, o, where, "tokens");
    const cJSON *const list = get(j, o, where, "inputs");
    if (!cJSON_IsArray(list)) fail(j, UNREADABLE, "%s.inputs: is not an array", where);
    if (j->t.code) return NULL;
    const char **const out = take(j, (size_t)cJSON_GetArraySize(list) + 1, sizeof *out);
    for (const cJSON *v = list->child; out && v && !j->t.code; v = v->next) {
        if (!cJSON_IsString(v) || strlen(v->valuestring) != 64)
            fail(j, UNREADABLE, "%s.inputs: is not a list of hashes", where);
        else if (*n > 0 && strcmp(out[*n - 1], v->valuestring) > 0)
            fail(j, UNREADABLE, "%s.inputs: is not sorted", where);
        else
            out[(*n)++] = v->valuestring;
    }
    return out;
}

static void read_data(job *j, const cJSON *root, data_claim *d)
{
    static const char *const keys[] = {"kind",         "path",    "sha256", "split",
                                       "first",        "count",   "tokens", "inputs_sha256",
                                       "writers_word", "heldout", NULL};
    static const char *const word_keys[] = {"fitted", "candidates", NULL};
    const cJSON *const o = get(j, root, "certificate", "data");
    if (!o || !only_keys(j, o, "data", keys)) return;
    d->kind = get_text(j, o, "data", "kind");
    d->random = strcmp(d->kind, "random") == 0;
    d->part = strcmp(d->kind, "part") == 0;
    if (!d->random && !d->part && strcmp(d->kind, "file") != 0)
        fail(j, UNREADABLE, "data.kind: is not random, file or part");
    d->count = get_count(j, o, "data", "count");
    if (d->count == 0) fail(j, UNREADABLE, "data.count: is 0");
    d->inputs_sha256 = get_hash(j, o, "data", "inputs_sha256");
    if (d->random || d->part) d->tokens = get_count(j, o, "data", "tokens");
    if (d->part) d->first = get_count(j, o, "data", "first");
    if (d->random) return;
    d->path = get_text(j, o, "data", "path");
    d->sha256 = get_hash(j, o, "data", "sha256");
    d->split = get_count(j, o, "data", "split");
    const cJSON *const word = find(o, "writers_word");
    if (!word && !find(o, "heldout")) return;
    if (!word || !only_keys(j, word, "data.writers_word", word_keys)) {
        fail(j, UNREADABLE, "data.writers_word: is missing");
        return;
    }
    d->heldout = true;
    d->candidates = get_count(j, word, "data.writers_word", "candidates");
    d->fitted_hashes = read_hashes(j, get(j, word, "data.writers_word", "fitted"), "data.fitted",
                                   &d->fitted_tokens, &d->nfitted);
    d->heldout_hashes = read_hashes(j, get(j, o, "data", "heldout"), "data.heldout",
                                    &d->heldout_tokens, &d->nheldout);
}

/* headline.domain, as docs/format.md makes it of `data`. */
static const char *domain_words(job *j, const data_claim *d)
{
    if (d->random)
        return words(j, "the %zu random inputs of %zu tokens drawn from the seed", d->count,
                     d->tokens);
    if (!d->part && d->count == 1)
        return words(j, "the one input in the data file (split %zu)", d->split);
    if (!d->part)
        return words(j, "the %zu inputs in the data file (split %zu)", d->count, d->split);
    const char *const which = d->count == 1 ? words(j, "input %zu of the data file", d->first)
                                            : words(j, "each of inputs %zu to %zu of the data file",
                                                    d->first, d->first + d->count - 1);
    return d->tokens ? words(j, "%s, its first %zu tokens at most", which, d->tokens) : which;
}

/* ---- the certificate ------------------------------------------------------------------------- */

static void read_certificate(job *j, const cJSON *root, bool link, certificate *c)
{
    static const char *const keys[] = {
        "pare",     "reduction",    "input",    "output", "data",  "headline", "hypotheses",
        "theorems", "observations", "evidence", "paper",  "chain", NULL};
    static const char *const reduction_keys[] = {"name", "seed", NULL};
    static const char *const headline_keys[] = {"proven", "measured", "norm", "domain", NULL};
    static const char *const file_keys[] = {"path",         "sha256",  "files",
                                            "architecture", "tensors", NULL};
    if (!only_keys(j, root, "certificate", keys)) return;
    if (get_count(j, root, "certificate", "pare") != 2 && !j->t.code)
        fail(j, UNREADABLE, "certificate: this program reads schema 2 only");
    const cJSON *const reduction = get(j, root, "certificate", "reduction"),
                       *const headline = get(j, root, "certificate", "headline"),
                       *const chain = get(j, root, "certificate", "chain");
    if (!reduction || !only_keys(j, reduction, "reduction", reduction_keys) ||
        !only_keys(j, headline, "headline", headline_keys))
        return;
    c->reduction = get_text(j, reduction, "reduction", "name");
    c->seed = get_seed(j, reduction, "reduction", "seed");
    c->file[0] = get(j, root, "certificate", "input");
    c->file[1] = get(j, root, "certificate", "output");
    for (int s = 0; s < 2; s++) only_keys(j, c->file[s], s ? "output" : "input", file_keys);
    read_data(j, root, &c->data);
    c->proven = get_number(j, headline, "headline", "proven");
    c->measured = get_number(j, headline, "headline", "measured");
    if (!j->t.code && (!(c->proven >= 0) || !(c->measured >= 0)))
        fail(j, NOT_TRUE, "headline: a bound below 0");
    c->domain = domain_words(j, &c->data);
    const bool same = strcmp(get_text(j, headline, "headline", "domain"), c->domain) == 0 &&
                      strcmp(get_text(j, headline, "headline", "norm"),
                             "largest absolute difference over the output entries") == 0;
    if (!j->t.code && !same)
        state(j, REFUTED, "headline.domain", "norm or domain are not those of data");
    for (section s = 0; s < SECTIONS; s++) read_section(j, s, root, c);
    const bool composed = !j->t.code && strcmp(c->reduction, "chain") == 0;
    const size_t links = cJSON_IsArray(chain) ? (size_t)cJSON_GetArraySize(chain) : 0;
    if (!j->t.code &&
        (!cJSON_IsArray(chain) || composed != (links > 0) || (link && links) || links > MOST_LINKS))
        fail(j, UNREADABLE, "chain: has links exactly where the reduction is chain");
    if (j->t.code || !links) return;
    c->links = take(j, links, sizeof *c->links);
    for (const cJSON *o = chain->child; c->links && o && !j->t.code; o = o->next)
        read_certificate(j, o, true, &c->links[c->nlinks++]);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The hash of one tensor's bytes; those of a plain file are its stored bytes. */
static void check_tensors(job *j, const char *side, const cJSON *claimed, const model *m)
{
    char hex[65];
    const char *bad = NULL;
    if ((size_t)cJSON_GetArraySize(claimed) != m->ntensors) bad = "their number";
    for (size_t i = 0; i < m->ntensors && !bad; i++) {
        const tensor *const t = &m->tensors[i];
        const cJSON *const h = find(claimed, t->name);
        sha256_of(hex, t->data, t->size);
        if (!cJSON_IsString(h) || strcmp(h->valuestring, hex) != 0) bad = t->name;
    }
    const char *const what = words(j, "%s.tensors", side);
    if (bad)
        state(j, REFUTED, what, "%s is not the certificate's", bad);
    else
        state(j, CONFIRMED, what, "the hashes of all %zu tensors are the certificate's",
              m->ntensors);
}

/* The model's own file where it is one file; of a folder each file that the certificate names. */
static void check_original(job *j, const char *side, const cJSON *o, const char *path)
{
    char hex[65];
    bytes file;
    const cJSON *const files = find(o, "files");
    const bool one = cJSON_GetArraySize(files) == 1;
    const char *const what = words(j, "%s.files", side);
    size_t read = 0;
    for (const cJSON *f = files->child; f && !j->t.code; f = f->next) {
        const char *at = words(j, "%s/%s", path, f->string);
        if (one && !file_exists(at)) at = path;
        if (strstr(f->string, "..") || (!j->o->read && !file_exists(at))) break;
        if (!read_file(j, at, &file)) return;
        sha256_of(hex, file.v, file.n);
        if (!cJSON_IsString(f) || strcmp(f->valuestring, hex) != 0) {
            state(j, REFUTED, what, "%s is not the certificate's file", at);
            return;
        }
        read++;
    }
    if (read == (size_t)cJSON_GetArraySize(files))
        state(j, CONFIRMED, what, "the files at %s have the certificate's hashes", path);
    else
        state(j, NOT_CHECKED, what, "not all of them are at %s", path);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* `sha256` is the hash of the one file, or of the sorted lines "HASH  NAME". */
static void check_list(job *j, const char *side, const cJSON *o, const char *sha256)
{
    const cJSON *const files = get(j, o, side, "files");
    const size_t n = cJSON_IsObject(files) ? (size_t)cJSON_GetArraySize(files) : 0;
    const char **const line = take(j, n + 1, sizeof *line);
    char hex[65];
    size_t i = 0;
    if (n == 0) fail(j, UNREADABLE, "%s.files: names no file", side);
    for (const cJSON *f = n ? files->child : NULL; f && !j->t.code; f = f->next)
        line[i++] = words(j, "%s  %s\n", get_hash(j, files, side, f->string), f->string);
    if (j->t.code) return;
    qsort(line, n, sizeof *line, by_text);
    hasher h = hasher_new();
    for (i = 0; i < n; i++) hasher_add(&h, line[i], strlen(line[i]));
    hasher_end(&h, hex);
    if (memcmp(n == 1 ? line[0] : hex, sha256, 64) != 0)
        state(j, REFUTED, words(j, "%s.files", side), "they do not have the hash sha256");
}

static bool check_model(job *j, certificate *c, int s, const char *unpacked)
{
    static const char *const sides[2] = {"input", "output"};
    const char *const side = sides[s], *const moved = s ? j->o->output : j->o->input;
    const cJSON *const o = c->file[s];
    const char *const claimed = get_hash(j, o, side, "sha256");
    const char *const architecture = get_hash(j, o, side, "architecture");
    const char *const path =
        moved && !j->link[0] ? moved : beside(j, c->folder, get_text(j, o, side, "path"));
    char hex[65];
    bytes file;
    check_list(j, side, o, claimed);
    if (j->t.code) return false;
    if (unpacked && cJSON_IsObject(find(o, "files"))) check_original(j, side, o, path);
    const char *const at = unpacked ? words(j, "%s/%s.safetensors", unpacked, side) : path;
    if (!read_file(j, at, &file) || !read_model(j, at, file, &c->model[s])) {
        if (!unpacked && j->t.code == UNREADABLE && !strstr(j->t.text, "out of memory"))
            strncat(j->t.text,
                    "; if it is a folder or a ticket: pare verify CERT --unpack DIR, then "
                    "--unpacked DIR",
                    sizeof j->t.text - strlen(j->t.text) - 1);
        return false;
    }
    sha256_of(hex, file.v, file.n);
    const bool same = strcmp(hex, claimed) == 0;
    if (!unpacked)
        state(j, same ? CONFIRMED : REFUTED, words(j, "%s.sha256", side),
              same ? "%s is the certificate's file" : "%s is not the certificate's file", at);
    const bool alike = strcmp(c->model[s].architecture, architecture) == 0;
    state(j, alike ? CONFIRMED : REFUTED, words(j, "%s.architecture", side),
          "the canonical architecture has %s hash", alike ? "the certificate's" : "another");
    check_tensors(j, side, find(o, "tensors"), &c->model[s]);
    return j->t.code == 0;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* The hashes of the held-out inputs one by one; none of them is among those fitted to. */
static void check_heldout(job *j, const certificate *c)
{
    const data_claim *const d = &c->data;
    const char *bad = NULL;
    char(*const hex)[65] = take(j, c->set.n, sizeof *hex);
    const char **const list = take(j, c->set.n, sizeof *list);
    if (!d->heldout || !hex || !list) return;
    for (size_t i = 0; i < c->set.n; i++) {
        const inputs one = {1, c->set.width, &c->set.list[i]};
        hash_inputs(&one, d->heldout_tokens, hex[i]);
        list[i] = hex[i];
        if (c->set.list[i].continues) bad = "an input is a window that begins amid a text";
    }
    qsort(list, c->set.n, sizeof *list, by_text);
    if (d->fitted_tokens != d->heldout_tokens)
        bad = "fitted and held-out inputs are cut differently";
    if (d->candidates != 1) bad = "the held-out inputs decided between several cuts";
    if (d->nheldout != c->set.n) bad = "their number is not that of the inputs";
    for (size_t i = 0; !bad && i < c->set.n; i++)
        if (strcmp(list[i], d->heldout_hashes[i]) != 0) bad = "a hash is not that of an input";
    for (size_t i = 0; !bad && i < d->nfitted; i++)
        if (bsearch(&d->fitted_hashes[i], list, c->set.n, sizeof *list, by_text))
            bad = "the cut was fitted to one of them";
    state(j, bad ? REFUTED : CONFIRMED, "data.heldout", "%s",
          bad ? bad : "the held-out inputs are the given ones, and no fitted one is among them");
}

static bool check_inputs(job *j, certificate *c, const char *unpacked)
{
    char hex[65];
    const char *const moved = j->o->data;
    const char *const path = moved          ? moved
                             : c->data.path ? beside(j, c->folder, c->data.path)
                                            : NULL;
    if (!(unpacked ? load_unpacked(j, &c->model[0], unpacked, &c->data, &c->set)
                   : load_inputs(j, &c->model[0], &c->data, c->seed, path, &c->set)))
        return false;
    hash_inputs(&c->set, 0, hex);
    const bool same = strcmp(hex, c->data.inputs_sha256) == 0 && c->set.n == c->data.count;
    state(j, same ? CONFIRMED : REFUTED, "data.inputs_sha256",
          same ? "the %zu inputs are the certificate's"
               : "the %zu inputs are not the certificate's",
          c->set.n);
    check_heldout(j, c);
    return j->t.code == 0;
}

/* ---- chains ---------------------------------------------------------------------------------- */

static bool same_text(const cJSON *a, const cJSON *b, const char *key)
{
    const cJSON *const x = find(a, key), *const y = find(b, key);
    return cJSON_IsString(x) && cJSON_IsString(y) && strcmp(x->valuestring, y->valuestring) == 0;
}

static bool same_model(const cJSON *a, const cJSON *b)
{
    return same_text(a, b, "sha256") && same_text(a, b, "architecture");
}

static void check_links_fit(job *j, const certificate *c)
{
    const char *bad = NULL;
    const certificate *const last = &c->links[c->nlinks - 1];
    if (!same_model(c->file[0], c->links[0].file[0])) bad = "the first link begins elsewhere";
    if (!same_model(c->file[1], last->file[1])) bad = "the last link ends elsewhere";
    for (size_t i = 0; i < c->nlinks; i++) {
        if (i > 0 && !same_model(c->links[i - 1].file[1], c->links[i].file[0]))
            bad = "a link does not begin where the one before it ends";
        if (strcmp(c->links[i].data.inputs_sha256, c->data.inputs_sha256) != 0)
            bad = "a link is about other inputs";
    }
    state(j, bad ? REFUTED : CONFIRMED, "chain", "%s", bad ? bad : "the links fit");
}

static bool check_one(job *j, certificate *c, const char *unpacked)
{
    return check_model(j, c, 0, unpacked) && check_model(j, c, 1, unpacked) &&
           check_inputs(j, c, unpacked);
}

static void check_all(job *j, certificate *c, const char *folder, const char *unpacked)
{
    c->folder = folder;
    if (!check_one(j, c, unpacked)) return;
    if (c->nlinks) check_links_fit(j, c);
    check_claims(j, c);
    for (size_t i = 0; i < c->nlinks && !j->t.code; i++) {
        c->links[i].folder = folder;
        j->link = words(j, "link %zu: ", i);
        if (check_one(j, &c->links[i], unpacked ? words(j, "%s/%zu", unpacked, i + 1) : NULL))
            check_claims(j, &c->links[i]);
    }
    j->link = "";
}

/* unpacked.json must be about this certificate. */
static bool check_unpacked(job *j, const void *text, size_t n)
{
    bytes file;
    char hex[65];
    if (!j->o->unpacked) return true;
    if (!read_file(j, words(j, "%s/unpacked.json", j->o->unpacked), &file)) return false;
    sha256_of(hex, text, n);
    cJSON *const root = parse_json(j, "unpacked.json", file.v, file.n);
    const cJSON *const sum = find(find(root, "certificate"), "sha256");
    const bool same = cJSON_IsString(sum) && strcmp(sum->valuestring, hex) == 0;
    cJSON_Delete(root);
    if (!same)
        return fail(j, UNREADABLE, "%s: is not unpacked from this certificate", j->o->unpacked);
    state(
        j, NOT_CHECKED, "unpacked",
        "pare made %s from the model and data files: this step is trusted where no hash covers it",
        j->o->unpacked);
    return j->t.code == 0;
}

bool check_certificate(job *j, const char *name, const char *folder, const void *text, size_t n)
{
    j->link = "";
    cJSON *const root = parse_json(j, name, text, n);
    if (root && check_unpacked(j, text, n)) {
        certificate *const c = take(j, 1, sizeof *c);
        if (find(root, "pare_length")) {
            check_length(j, folder, root);
        } else if (c) {
            read_certificate(j, root, false, c);
            if (!j->t.code) check_all(j, c, folder, j->o->unpacked);
        }
    }
    cJSON_Delete(root);
    return j->t.code == 0;
}
