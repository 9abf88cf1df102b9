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

/* "kind name value ..." */
static const char *describe(job *j, const char *name, const cJSON *parameters)
{
    const char *what = words(j, "%.60s", name);
    for (const cJSON *v = parameters ? parameters->child : NULL; v && !j->t.code; v = v->next) {
        if (cJSON_IsNumber(v))
            what = words(j, "%s %.40s %.9g", what, v->string, v->valuedouble);
        else if (cJSON_IsString(v) && v->string)
            what = words(j, "%s %.40s \"%.100s\"", what, v->string, v->valuestring);
    }
    return what;
}

static double number_or_nan(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = find(o, key);
    return !v || cJSON_IsNull(v) ? NAN : get_number(j, o, key);
}

static void read_theorem(job *j, const cJSON *o, claim *c)
{
    const checking how = c->kind->how;
    const bool drawn = how == NEW_INPUT || how == NEW_SHARE;
    c->bound = get_number(j, o, "bound");
    c->domain = get_text(j, o, "domain");
    if (drawn) c->probability = get_number(j, o, "probability");
    const char *const side = get_text(j, o, "side");
    if (how != UNCHECKED && strcmp(side, c->kind->lower ? "lower" : "upper") != 0)
        fail(j, NOT_TRUE, "%s: is not a bound on that side", c->what);
    if (!(c->bound >= 0) || (drawn && !(c->probability > 0 && c->probability < 1)))
        fail(j, NOT_TRUE, "%s: a bound or a probability that cannot be", c->what);
    c->what = words(j, "%s: %.9g", c->what, c->bound);
}

static void read_claim(job *j, section s, const cJSON *o, claim *c)
{
    const char *const name = get_text(j, o, "kind");
    c->kind = find_kind(s, name);
    c->parameters = get(j, o, "parameters");
    if (!cJSON_IsObject(c->parameters)) fail(j, UNREADABLE, "%.60s: parameters", name);
    if (j->t.code) return;
    c->what = describe(j, name, c->parameters);
    c->value = number_or_nan(j, o, "value");
    c->limit = number_or_nan(j, o, "limit");
    if (s == THEOREMS) read_theorem(j, o, c);
    if (s == OBSERVATIONS && isnan(c->value)) fail(j, UNREADABLE, "%s: no value", c->what);
    const cJSON *const holds = s == HYPOTHESES ? get(j, o, "holds") : NULL;
    if (holds && !cJSON_IsBool(holds) && !cJSON_IsNull(holds))
        fail(j, UNREADABLE, "%s: holds is not true, false or null", c->what);
    c->holds = cJSON_IsNull(holds) ? -1 : cJSON_IsTrue(holds);
}

static void read_section(job *j, section s, const cJSON *root, certificate *c)
{
    const cJSON *const list = get_list(j, root, section_names[s]);
    if (cJSON_GetArraySize(list) > MOST_CLAIMS) fail(j, UNREADABLE, "too many claims");
    c->claims[s] = take(j, (size_t)cJSON_GetArraySize(list) + 1, sizeof *c->claims[s]);
    for (const cJSON *o = list ? list->child : NULL; o && !j->t.code; o = o->next)
        read_claim(j, s, o, &c->claims[s][c->n[s]++]);
}

/* ---- data ------------------------------------------------------------------------------------ */

static const char **read_hashes(job *j, const cJSON *o, size_t *tokens, size_t *n)
{
    const cJSON *const list = get_list(j, o, "inputs");
    const char **const out = take(j, (size_t)cJSON_GetArraySize(list) + 1, sizeof *out);
    *tokens = get_count(j, o, "tokens");
    for (const cJSON *v = list ? list->child : NULL; v && !j->t.code; v = v->next) {
        if (cJSON_IsString(v) && strlen(v->valuestring) == 64)
            out[(*n)++] = v->valuestring;
        else
            fail(j, UNREADABLE, "inputs: is not a list of hashes");
    }
    return out;
}

/* data.numbers: which inputs of the file, ascending. */
static void read_numbers(job *j, const cJSON *list, data_claim *d)
{
    const size_t n = (size_t)cJSON_GetArraySize(list);
    size_t at = 0;
    d->numbers = take(j, n, sizeof *d->numbers);
    if (n != d->count) fail(j, UNREADABLE, "data.numbers: %zu, but data.count is %zu", n, d->count);
    for (const cJSON *v = list ? list->child : NULL; v && !j->t.code; v = v->next, at++) {
        const double x = cJSON_IsNumber(v) ? v->valuedouble : -1;
        if (!(x >= 0 && x <= 0x1p53) || (at > 0 && !(x > (double)d->numbers[at - 1])))
            fail(j, UNREADABLE, "data.numbers: is not a list of ascending numbers");
        else
            d->numbers[at] = (size_t)x;
    }
}

static void read_data(job *j, const cJSON *o, data_claim *d)
{
    const char *const from = get_text(j, o, "kind");
    d->random = strcmp(from, "random") == 0;
    d->part = strcmp(from, "part") == 0;
    if (!d->random && !d->part && strcmp(from, "file") != 0)
        fail(j, UNREADABLE, "data.kind: is not random, file or part");
    d->count = get_count(j, o, "count");
    if (d->count == 0) fail(j, UNREADABLE, "data.count: is 0");
    d->inputs_sha256 = get_hash(j, o, "inputs_sha256");
    if (d->random || d->part) d->tokens = get_count(j, o, "tokens");
    if (d->part && find(o, "numbers"))
        read_numbers(j, get(j, o, "numbers"), d);
    else if (d->part)
        d->first = get_count(j, o, "first");
    if (d->random) return;
    d->path = get_text(j, o, "path");
    d->sha256 = get_hash(j, o, "sha256");
    d->split = get_count(j, o, "split");
    d->heldout = find(o, "heldout") || find(o, "writers_word");
    if (!d->heldout) return;
    const cJSON *const word = get(j, o, "writers_word");
    d->candidates = get_count(j, word, "candidates");
    d->fitted_hashes = read_hashes(j, get(j, word, "fitted"), &d->fitted_tokens, &d->nfitted);
    d->heldout_hashes = read_hashes(j, get(j, o, "heldout"), &d->heldout_tokens, &d->nheldout);
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
    const char *const which =
        d->numbers && d->count == 1 ? "one input of the data file, drawn by the seed"
        : d->numbers ? words(j, "each of %zu inputs of the data file, drawn by the seed", d->count)
        : d->count == 1 ? words(j, "input %zu of the data file", d->first)
                        : words(j, "each of inputs %zu to %zu of the data file", d->first,
                                d->first + d->count - 1);
    return d->tokens ? words(j, "%s, its first %zu tokens at most", which, d->tokens) : which;
}

/* ---- the certificate ------------------------------------------------------------------------- */

static void read_certificate(job *j, const cJSON *root, bool link, certificate *c)
{
    const cJSON *const reduction = get(j, root, "reduction"), *const line =
                                                                  get(j, root, "headline");
    const cJSON *const chain = get_list(j, root, "chain");
    if (get_count(j, root, "pare") != 2)
        fail(j, UNREADABLE, "certificate: this program reads schema 2 only");
    c->reduction = get_text(j, reduction, "name");
    c->seed = get_seed(j, reduction, "seed");
    c->file[0] = get(j, root, "input");
    c->file[1] = get(j, root, "output");
    read_data(j, get(j, root, "data"), &c->data);
    c->proven = get_number(j, line, "proven");
    c->measured = get_number(j, line, "measured");
    if (!(c->proven >= 0) || !(c->measured >= 0)) fail(j, NOT_TRUE, "headline: a bound below 0");
    c->domain = domain_words(j, &c->data);
    if (!is_text(find(line, "domain"), c->domain))
        state(j, REFUTED, "headline.domain", "it is not that of data");
    for (section s = 0; s < SECTIONS; s++) read_section(j, s, root, c);
    const size_t links = (size_t)cJSON_GetArraySize(chain);
    if ((strcmp(c->reduction, "chain") == 0) != (links > 0) || (link && links) ||
        links > MOST_LINKS)
        fail(j, UNREADABLE, "chain: has links exactly where the reduction is chain");
    c->links = take(j, links + 1, sizeof *c->links);
    for (const cJSON *o = chain ? chain->child : NULL; o && !j->t.code; o = o->next)
        read_certificate(j, o, true, &c->links[c->nlinks++]);
}

/* ---- files ----------------------------------------------------------------------------------- */

bool check_hash(job *j, const char *what, const char *path, bytes file, const char *claimed)
{
    char hex[65];
    sha256_of(hex, file.v, file.n);
    const bool same = strcmp(hex, claimed) == 0;
    state(j, same ? CONFIRMED : REFUTED, what, "%s is %s", path,
          same ? "the certificate's file" : "not the certificate's file");
    return same;
}

void check_architecture(job *j, const char *side, const model *m, const char *claimed)
{
    const bool same = strcmp(m->architecture, claimed) == 0;
    state(j, same ? CONFIRMED : REFUTED, words(j, "%s.architecture", side),
          "the canonical architecture has %s hash", same ? "the certificate's" : "another");
}

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

/* Of what was unpacked: each file that the certificate names, where it is found. */
static void check_original(job *j, const char *what, const cJSON *files, const char *path)
{
    char hex[65];
    bytes file;
    bool all = true;
    for (const cJSON *f = files->child; f && all && !j->t.code; f = f->next) {
        const char *at = words(j, "%s/%s", path, f->string);
        if (cJSON_GetArraySize(files) == 1 && !file_exists(at)) at = path;
        all = !strstr(f->string, "..") && (j->o->read || file_exists(at));
        if (!all || !read_file(j, at, &file)) continue;
        sha256_of(hex, file.v, file.n);
        if (is_text(f, hex)) continue;
        state(j, REFUTED, what, "%s is not the certificate's file", at);
        return;
    }
    state(j, all ? CONFIRMED : NOT_CHECKED, what,
          all ? "the files at %s have the certificate's hashes" : "not all of them are at %s",
          path);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* `sha256` is the hash of the one file, or of the sorted lines "HASH  NAME". */
static void check_list(job *j, const char *what, const cJSON *files, const char *sha256)
{
    const size_t n = cJSON_IsObject(files) ? (size_t)cJSON_GetArraySize(files) : 0;
    const char **const line = take(j, n + 1, sizeof *line);
    char hex[65];
    size_t i = 0;
    if (n == 0) fail(j, UNREADABLE, "%s: names no file", what);
    for (const cJSON *f = n ? files->child : NULL; f && !j->t.code; f = f->next)
        line[i++] = words(j, "%s  %s\n", get_hash(j, files, f->string), f->string);
    if (j->t.code) return;
    qsort(line, n, sizeof *line, by_text);
    SHA256_CTX h;
    SHA256_Init(&h);
    for (i = 0; i < n; i++) SHA256_Update(&h, line[i], strlen(line[i]));
    hash_end(&h, hex);
    if (memcmp(n == 1 ? line[0] : hex, sha256, 64) != 0)
        state(j, REFUTED, what, "they do not have the hash sha256");
}

static bool check_model(job *j, certificate *c, int s, const char *unpacked)
{
    static const char *const sides[2] = {"input", "output"};
    const char *const side = sides[s], *const moved = s ? j->o->output : j->o->input;
    const char *const list = words(j, "%s.files", side);
    const cJSON *const o = c->file[s];
    const char *const claimed = get_hash(j, o, "sha256");
    const char *const architecture = get_hash(j, o, "architecture");
    const char *const path =
        moved && !j->link[0] ? moved : beside(j, c->folder, get_text(j, o, "path"));
    bytes file;
    check_list(j, list, get(j, o, "files"), claimed);
    if (j->t.code) return false;
    if (unpacked) check_original(j, list, find(o, "files"), path);
    const char *const at = unpacked ? words(j, "%s/%s.safetensors", unpacked, side) : path;
    if (!read_file(j, at, &file)) return false;
    if (!unpacked) check_hash(j, words(j, "%s.sha256", side), at, file, claimed);
    if (!read_model(j, at, file, &c->model[s])) {
        if (!unpacked && !strstr(j->t.text, "out of memory"))
            strncat(
                j->t.text,
                "; if it is a folder or a ticket: pare verify CERT --unpack DIR, then --unpacked "
                "DIR",
                sizeof j->t.text - strlen(j->t.text) - 1);
        return false;
    }
    check_architecture(j, side, &c->model[s], architecture);
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
    if (!hex || !list) return;
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
    const data_claim *const d = &c->data;
    char hex[65];
    const char *const path = j->o->data ? j->o->data
                             : d->path  ? beside(j, c->folder, d->path)
                                        : NULL;
    if (!(unpacked ? load_unpacked(j, &c->model[0], unpacked, d->count, &c->set)
                   : load_inputs(j, &c->model[0], d, c->seed, path, &c->set)))
        return false;
    hash_inputs(&c->set, 0, hex);
    const bool same = strcmp(hex, d->inputs_sha256) == 0 && c->set.n == d->count;
    state(j, same ? CONFIRMED : REFUTED, "data.inputs_sha256", "the %zu inputs are %s", c->set.n,
          same ? "the certificate's" : "not the certificate's");
    if (d->heldout) check_heldout(j, c);
    return j->t.code == 0;
}

/* ---- chains ---------------------------------------------------------------------------------- */

static bool same_text(const cJSON *a, const cJSON *b)
{
    return cJSON_IsString(a) && is_text(b, a->valuestring);
}

static bool same_model(const cJSON *a, const cJSON *b)
{
    return same_text(find(a, "sha256"), find(b, "sha256")) &&
           same_text(find(a, "architecture"), find(b, "architecture"));
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
    const bool same = is_text(find(find(root, "certificate"), "sha256"), hex);
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
