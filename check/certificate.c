/* certificate.c - what a certificate (docs/format.md, "Certificates") says about files and inputs; a
 * chain is checked link by link and as a whole. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LINKS = 100 };

/* ---- files ----------------------------------------------------------------------------------- */

/* The hashes of the tensors' numbers. */
static void check_tensors(job *j, const char *what, const cJSON *claimed, const model *m)
{
    const char *bad = (size_t)cJSON_GetArraySize(claimed) != m->ntensors ? "their number" : NULL;
    for (size_t i = 0; i < m->ntensors && !bad; i++) {
        const tensor *const t = &m->tensors[i];
        char hex[65];
        sha256_of(hex, t->data, t->size);
        if (!is_text(find(claimed, t->name), hex)) bad = t->name;
    }
    state(j, bad ? REFUTED : CONFIRMED, what,
          bad ? words(j, "%s is not the certificate's", bad)
              : words(j, "the hashes of all %zu tensors are the certificate's", m->ntensors));
}

/* `sha256` is the hash of the one file, or of the sorted lines "HASH  NAME". Of an unpacked folder or
 * ticket the files themselves are hashed, where they are found. */
static void check_list(job *j, const char *what, const cJSON *o, const char *path)
{
    const cJSON *const files = get(j, o, "files");
    const size_t n = (size_t)cJSON_GetArraySize(files);
    const char **const line = take(j, n + 1, sizeof *line), *bad = NULL, *absent = NULL;
    char hex[65];
    SHA256_CTX h;
    size_t i = 0;
    must(j, cJSON_IsObject(files) && n > 0, "%s: names no file", what);
    for (const cJSON *f = files->child; f; f = f->next) {
        const char *at = words(j, "%s/%s", path, f->string);
        line[i++] = words(j, "%s  %s\n", get_text(j, files, f->string), f->string);
        if (!j->o->unpacked) continue;
        if (n == 1 && !file_exists(at)) at = path;
        if (strstr(f->string, "..") || (!j->o->read && !file_exists(at))) {
            absent = at;
            continue;
        }
        const bytes file = read_file(j, at);
        sha256_of(hex, file.v, file.n);
        if (!is_text(f, hex)) bad = at;
    }
    qsort(line, n, sizeof *line, by_text);
    SHA256_Init(&h);
    for (i = 0; i < n; i++) hash_text(&h, line[i]);
    hash_end(&h, hex);
    if (!same(n == 1 ? files->child->valuestring : hex, get_text(j, o, "sha256")))
        bad = "the list of them";
    if (bad || j->o->unpacked)
        state(j,
              bad      ? REFUTED
              : absent ? NOT_CHECKED
                       : CONFIRMED,
              what,
              bad      ? words(j, "%s is not the certificate's", bad)
              : absent ? words(j, "%s is not there", absent)
                       : words(j, "the files at %s have the certificate's hashes", path));
}

static model check_model(job *j, const certificate *c, int s, const char *folder,
                         const char *unpacked)
{
    const char *const side = s ? "output" : "input";
    const cJSON *const o = get(j, c->json, side);
    const char *path = beside(j, folder, get_text(j, o, "path"));
    if (j->o->moved[s] && !*j->link) path = j->o->moved[s];
    check_list(j, words(j, "%s.files", side), o, path);
    if (unpacked) path = words(j, "%s/%s.safetensors", unpacked, side);
    const model m =
        read_model(j, path, unpacked ? read_file(j, path) : read_checked(j, side, path, o));
    check_equal(j, words(j, "%s.architecture", side), m.hash, get_text(j, o, "architecture"),
                "the canonical architecture");
    check_tensors(j, words(j, "%s.tensors", side), find(o, "tensors"), &m);
    return m;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* headline.domain, as docs/format.md makes it of `data`. */
static const char *domain_words(job *j, const cJSON *data)
{
    const char *const kind = get_text(j, data, "kind");
    const size_t n = get_count(j, data, "count");
    if (same(kind, "random"))
        return words(j, "the %zu random inputs of %zu tokens drawn from the seed", n,
                     get_count(j, data, "tokens"));
    const size_t split = get_count(j, data, "split");
    if (same(kind, "file"))
        return n == 1 ? words(j, "the one input in the data file (split %zu)", split)
                      : words(j, "the %zu inputs in the data file (split %zu)", n, split);
    must(j, same(kind, "part"), "data.kind: is not random, file or part");
    const size_t tokens = get_count(j, data, "tokens"), first = count_or_0(j, data, "first");
    const char *const which =
        find(data, "numbers")
            ? n == 1 ? "one input of the data file, drawn by the seed"
                     : words(j, "each of %zu inputs of the data file, drawn by the seed", n)
        : n == 1 ? words(j, "input %zu of the data file", first)
                 : words(j, "each of inputs %zu to %zu of the data file", first, first + n - 1);
    return tokens ? words(j, "%s, its first %zu tokens at most", which, tokens) : which;
}

/* A list of hashes, which is sorted. */
static const char **read_hashes(job *j, const cJSON *o, size_t *tokens, size_t *n)
{
    const cJSON *const list = get_list(j, o, "inputs");
    const char **const v = take(j, (size_t)cJSON_GetArraySize(list) + 1, sizeof *v);
    *tokens = get_count(j, o, "tokens");
    *n = 0;
    for (const cJSON *h = list->child; h; h = h->next) {
        must(j, cJSON_IsString(h), "data: a hash is no text");
        v[(*n)++] = h->valuestring;
    }
    return v;
}

/* The hashes of the held-out inputs one by one; none of them is among those fitted to. */
static void check_heldout(job *j, const certificate *c)
{
    const cJSON *const word = get(j, c->data, "writers_word");
    const char *bad = NULL;
    size_t tokens[2], n[2];
    const char **const held = read_hashes(j, get(j, c->data, "heldout"), &tokens[0], &n[0]);
    const char **const fitted = read_hashes(j, get(j, word, "fitted"), &tokens[1], &n[1]);
    const char **const own = take(j, c->set.n, sizeof *own);
    for (size_t i = 0; i < c->set.n; i++) {
        const inputs one = {1, c->set.width, &c->set.list[i]};
        char *const hex = take(j, 65, 1);
        hash_inputs(&one, tokens[0], hex);
        own[i] = hex;
        if (one.list->continues) bad = "an input is a window that begins amid a text";
    }
    qsort(own, c->set.n, sizeof *own, by_text);
    if (tokens[0] != tokens[1]) bad = "fitted and held-out inputs are cut differently";
    if (get_count(j, word, "candidates") != 1) bad = "they decided between several cuts";
    if (n[0] != c->set.n) bad = "their number is not that of the inputs";
    for (size_t i = 0; !bad && i < c->set.n; i++)
        if (!same(own[i], held[i])) bad = "a hash is not that of an input";
    for (size_t i = 0; !bad && i < n[1]; i++)
        if (bsearch(&fitted[i], own, c->set.n, sizeof *own, by_text))
            bad = "the cut was fitted to one of them";
    state(j, bad ? REFUTED : CONFIRMED, "data.heldout",
          bad ? bad : "the held-out inputs are the given ones, and no fitted one is among them");
}

static inputs check_inputs(job *j, const certificate *c, const char *folder, const char *unpacked)
{
    const cJSON *const data = c->data;
    const model *const m = &c->model[0];
    const uint64_t seed = get_seed(j, get(j, c->json, "reduction"), "seed");
    const size_t count = get_count(j, data, "count");
    const char *path = find(data, "path") ? beside(j, folder, get_text(j, data, "path")) : "";
    char hex[65];
    if (j->o->moved[2]) path = j->o->moved[2];
    const inputs set =
        unpacked ? load_unpacked(j, m, unpacked, count) : load_inputs(j, m, data, seed, path);
    if (set.n != count) state(j, REFUTED, "data.count", words(j, "there are %zu inputs", set.n));
    hash_inputs(&set, 0, hex);
    check_equal(j, "data.inputs_sha256", hex, get_text(j, data, "inputs_sha256"),
                words(j, "the list of %zu inputs", set.n));
    return set;
}

/* ---- one certificate, and chains ------------------------------------------------------------- */

static void check_one(job *j, const cJSON *json, const char *folder, const char *unpacked)
{
    certificate c = {.json = json, .data = get(j, json, "data")};
    must(j, get_count(j, json, "pare") == 2, "certificate: this program reads schema 2 only");
    c.domain = domain_words(j, c.data);
    if (!is_text(find(get(j, json, "headline"), "domain"), c.domain))
        state(j, REFUTED, "headline.domain", "it is not that of data");
    for (int s = 0; s < 2; s++) c.model[s] = check_model(j, &c, s, folder, unpacked);
    c.set = check_inputs(j, &c, folder, unpacked);
    if (find(c.data, "heldout") || find(c.data, "writers_word")) check_heldout(j, &c);
    check_claims(j, &c);
}

static bool same_keys(const cJSON *a, const cJSON *b, const char *key)
{
    const cJSON *const v = find(a, key);
    return cJSON_IsString(v) && is_text(find(b, key), v->valuestring);
}

static bool same_model(const cJSON *a, const cJSON *b)
{
    return same_keys(a, b, "sha256") && same_keys(a, b, "architecture");
}

/* Each link begins where the one before it ends, and is about the same inputs. */
static void check_chain(job *j, const cJSON *json, const cJSON *links, const char *folder)
{
    const cJSON *at = find(json, "input"), *link;
    const char *bad = NULL;
    size_t i = 0;
    cJSON_ArrayForEach(link, links)
    {
        if (!same_model(at, find(link, "input"))) bad = "a link does not begin where it must";
        if (!same_keys(find(json, "data"), find(link, "data"), "inputs_sha256"))
            bad = "a link is about other inputs";
        at = find(link, "output");
    }
    if (!same_model(at, find(json, "output"))) bad = "the last link ends elsewhere";
    state(j, bad ? REFUTED : CONFIRMED, "chain", bad ? bad : "the links fit");
    cJSON_ArrayForEach(link, links)
    {
        j->link = words(j, "link %zu: ", i++);
        must(j, cJSON_GetArraySize(get_list(j, link, "chain")) == 0, "chain: a link is a chain");
        check_one(j, link, folder, j->o->unpacked ? words(j, "%s/%zu", j->o->unpacked, i) : NULL);
    }
    j->link = "";
}

/* unpacked.json must be about this certificate. */
static void check_unpacked(job *j, bytes text)
{
    char hex[65];
    if (!j->o->unpacked) return;
    const bytes file = read_file(j, words(j, "%s/unpacked.json", j->o->unpacked));
    sha256_of(hex, text.v, text.n);
    const cJSON *const root = parse_json(j, "unpacked.json", file.v, file.n);
    must(j, is_text(find(find(root, "certificate"), "sha256"), hex),
         "%s: is not unpacked from this certificate", j->o->unpacked);
    state(j, NOT_CHECKED, "unpacked",
          words(j, "pare made %s: this step is trusted where no hash covers it", j->o->unpacked));
}

typedef struct whole {
    const char *name, *folder;
    bytes text;
} whole;

static void check_whole(job *j, void *with)
{
    const whole *const w = with;
    const cJSON *const root = parse_json(j, w->name, w->text.v, w->text.n);
    check_unpacked(j, w->text);
    if (find(root, "pare_length")) {
        check_length(j, w->folder, root);
        return;
    }
    const cJSON *const links = get_list(j, root, "chain");
    const bool chain = same(get_text(j, get(j, root, "reduction"), "name"), "chain");
    must(j, chain == (cJSON_GetArraySize(links) > 0) && cJSON_GetArraySize(links) <= MOST_LINKS,
         "chain: has links exactly where the reduction is chain");
    check_one(j, root, w->folder, j->o->unpacked);
    if (chain) check_chain(j, root, links, w->folder);
}

bool check_certificate(job *j, const char *name, const char *folder, const void *text, size_t n)
{
    whole w = {name, folder, {text, n}};
    j->link = "";
    return attempt(j, check_whole, &w);
}
