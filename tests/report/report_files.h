/* report_files.h - small files of every kind that a report reads. */
#ifndef PARE_TESTS_REPORT_FILES_H
#define PARE_TESTS_REPORT_FILES_H
#include <pare_test.h>
#include "cert/prove.h"
#include <pare/plan.h>

#define REPORT_HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A certificate with claims of every section, and a chain; `word` (NULL: none) stands in every
 * string that a file may choose freely. */
static inline void put_cert(const char *path, const char *word)
{
    const pare_claim claims[] = {
        {.kind = PARE_APRIORI_FOLDED, .holds = PARE_FALSE, .value = 8, .limit = 2},
        {.kind = PARE_FOLD_NOT_ROTARY, .holds = PARE_TRUE},
        {.kind = PARE_LAYER_REPLACED, .holds = PARE_TRUE, .text = word ? word : "the mean"},
        {.kind = PARE_NEW_INPUT_INDEPENDENT, .holds = PARE_UNKNOWN},
        {.kind = PARE_LINK_HYPOTHESES, .holds = PARE_FALSE, .text = word ? word : "fold"},
        {.kind = PARE_APRIORI_OUTPUTS, .value = INFINITY, .domain = word ? word : "all inputs"},
        {.kind = PARE_ROWS_CHANGED, .value = 0.25},
        {.kind = PARE_AUC_LEAST, .value = 0.75},
        {.kind = PARE_ATTENTION_RATIO, .p = {0}, .value = 0.625},
        {.kind = PARE_ATTENTION_RATIO, .p = {1}, .value = 0.875},
        {.kind = PARE_ATTENTION_RATIO, .p = {2}, .value = 1.125},
        {.kind = PARE_LOCAL_OUTPUTS, .value = 900},
        {.kind = PARE_BALL_OUTPUTS,
         .p = {0.5},
         .text = word ? word : "in the 2-norm",
         .value = 0.5},
        {.kind = PARE_ENGINE_DISTANCE, .value = 1e-6},
        {.kind = PARE_STREAM_OPTIMALITY,
         .p = {4},
         .text = word ? word : "h0",
         .value = 3,
         .limit = 2},
        {.kind = PARE_PAPER_SCORES, .value = 0.001},
    };
    pare_arena *const a = pare_arena_new();
    pare_err err;
    pare_cert c = {
        .reduction = word ? word : "width.auto",
        .seed = 7,
        .input = {.path = word ? word : "a<b>&'.st",
                  .sha256 = REPORT_HASH,
                  .architecture = REPORT_HASH},
        .output = {.path = word ? word : "small.st",
                   .sha256 = REPORT_HASH,
                   .architecture = REPORT_HASH},
        .data = {.kind = "random", .count = 64, .tokens = 8, .inputs_sha256 = REPORT_HASH},
        .norm = word ? word : "largest absolute difference over the output entries",
        .domain = word ? word : "64 random inputs",
        .proven = 0.25,
        .measured = 0.125};
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++)
        assert_ok(pare_cert_add(&c, a, claims[i], &err), &err);
    pare_cert link = c;
    pare_cert *links[] = {&link, &link};
    c.reduction = "chain";
    c.chain = links;
    c.nchain = 2;
    assert_ok(pare_cert_write(&c, path, true, &err), &err);
    pare_arena_free(a);
}

static const char run_text[] =
    "{\"command\":\"width\",\"threads\":3,\"machine\":{\"cpu\":\"an EPYC of 1\"},"
    "\"line\":\"pare width a.st -o "
    "small.st\",\"input\":{\"sha256\":\"%1$s\","
    "\"parameters\":4000,\"bytes\":8000,\"file_bytes\":16000,\"macs\":80000},"
    "\"output\":{\"sha256\":\"%1$s\",\"parameters\":1000,\"bytes\":2000,"
    "\"file_bytes\":4000,\"macs\":20000},\"metric\":{\"name\":\"auc\",\"before\":0.9,\"after\":0."
    "89},"
    "\"time_ms\":{\"before\":4,\"after\":1}}\n";

static const char probe_text[] =
    "{\"command\":\"probe\",\"line\":\"pare probe a.st --json\",\"input\":{\"path\":\"a.st\","
    "\"sha256\":\"%1$s\"},\"probe\":{\"parameters\":4000,\"largest_output\":10,"
    "\"weights\":[{\"name\":\"Wq\",\"block\":0,\"head\":0,\"norm\":2,\"effective_rank\":3},"
    "{\"name\":\"W1\",\"block\":0,\"head\":null,\"norm\":\"inf\",\"effective_rank\":5}],"
    "\"stream\":[{\"place\":\"h0\",\"axes\":[1,0.1,0.001]}],"
    "\"theorems\":[{\"theorem\":\"Theorem 3.3\",\"method\":\"jl\",\"hypothesis\":\"small\","
    "\"where\":\"layer 0\",\"holds\":false,\"value\":8,\"limit\":2,\"factor\":4}],"
    "\"cuts\":[{\"method\":\"auto\",\"parameters\":1000,\"largest\":0.5,\"metric\":0.9},"
    "{\"method\":\"auto\",\"parameters\":100,\"largest\":5,\"metric\":0.7},"
    "{\"method\":\"jl\",\"dim\":4,\"refused\":\"a skip\"}],"
    "\"depth\":{\"heads\":[{\"block\":0,\"head\":0,\"eta\":0.5,\"entropy\":null}],"
    "\"layers\":[{\"block\":0,\"x_max\":1,\"predicted_lost\":0.4}],"
    "\"curves\":[{\"kind\":\"pool\",\"points\":[{\"exact\":1,\"error\":0},"
    "{\"exact\":0,\"error\":0.5}]}],\"verdict\":\"collapsible\",\"why\":\"pool does\","
    "\"violated\":\"nothing\"},"
    "\"metric\":{\"name\":\"auc\",\"before\":0.9},"
    "\"directions\":[{\"direction\":\"width\",\"can\":true,\"cut\":\"width --dim 4\","
    "\"left\":\"6 %% of the parameters\",\"proven\":0.375,\"measured\":0.3125,\"metric\":0.875,"
    "\"domain\":\"one input\",\"why\":\"dim 2 <fails>\"},"
    "{\"direction\":\"length\",\"can\":null,\"cut\":\"\",\"left\":\"\",\"proven\":\"inf\","
    "\"measured\":null,\"metric\":null,\"domain\":\"\",\"why\":\"nobody asked\"}],"
    "\"untold\":[\"clusters <all>\"]}}\n";

static const char repro_text[] =
    "{\"command\":\"repro\",\"repro\":{\"name\":\"width\",\"tables\":[{\"name\":\"Table 1\","
    "\"about\":\"norms\",\"rows\":[{\"data\":\"board\",\"what\":\"mean\",\"published\":1.5,"
    "\"published_std\":null,\"ours\":1.4,\"ours_std\":0.1,\"class\":\"printed in the paper\","
    "\"verdict\":\"reproduced\","
    "\"note\":\"\"},{\"data\":\"board\",\"what\":\"claim\",\"published\":1,\"published_std\":null,"
    "\"ours\":2,\"ours_std\":null,\"class\":\"printed in the paper\",\"verdict\":\"false as "
    "printed\",\"note\":\"see errata\"}]}],"
    "\"curves\":[{\"table\":\"Table 1\",\"data\":\"board\",\"what\":\"error\",\"x\":[1,2,3],"
    "\"y\":[1,0.1,0.01]}],\"figure\":{\"name\":\"Figure "
    "2\",\"series\":[{\"data\":\"board\",\"what\":\"ours\","
    "\"metric\":\"auc\",\"values\":[0.5,0.75,1]}]},\"notes\":[\"two runs\"]}}\n";

static const char log_text[] = "# pare train log 1\n# command: pare train --kind gpt\n"
                               "setting,run,step,loss,lr,norm,val,test,best\n"
                               "0,0,1,2.5,0.1,1,,,\n0,0,2,1.5,0.1,1,0.5,0.4,0.5\n"
                               "0,1,1,2.0,0.1,1,,,\n0,1,2,1.0,0.1,1,0.6,0.4,0.6\n";

static const char plan_text[] =
    "{\"pare_plan\":1,\"tokens\":8,\"pattern\":{\"kind\":\"causal\"},\"oracle\":{\"length\""
    ":4,\"layers\":1,\"heads\":1,\"features\":27,\"d_k\":0,\"d_v\":0,\"dtype\":\"F32\",\"e"
    "xp_flush\":104,\"exp_err\":4,\"w_min\":8.271806125530277e-25},\"mode\":\"native\",\"r"
    "eference\":\"auto\",\"pack\":true,\"host_remainder\":false,\"one_vector\":false,\"fal"
    "lback\":true,\"eps\":0,\"delta\":0,\"blocks\":0,\"seed\":\"0\",\"inverse\":false,\"he"
    "ads\":[{\"layer\":0,\"dk\":8,\"dv\":8},{\"layer\":0,\"dk\":8,\"dv\":8},{\"layer\":1,\""
    "dk\":8,\"dv\":8},{\"layer\":1,\"dk\":8,\"dv\":8}],\"cost\":{\"calls\":12,\"instances\""
    ":12,\"merge_calls\":0,\"rounds\":2,\"max_len\":4,\"max_partials\":2,\"pairs\":144,\"c"
    "omputed_pairs\":144,\"padded_ratio\":1,\"flops\":5328,\"outside_flops\":912,\"direct_"
    "flops\":5328,\"bytes_in\":4608,\"bytes_out\":1920,\"weight_bytes\":0,\"scratch_bytes\""
    ":10752,\"theorem_calls\":288,\"lower_bound\":12,\"formula\":12}}\n";

static const char length_text[] =
    "{\"pare_length\":1,\"seed\":\"0\",\"input\":{\"path\":\"m.st\",\"sha256\":\"%1$s\"},"
    "\"plan\":{\"path\":\"plan.json\",\"sha256\":\"%1$s\"},\"tokens\":8,\"mode\":\"native\","
    "\"length\":4,\"norm\":\"largest difference\",\"domain\":\"one input\","
    "\"rows_of_a_head\":256,\"run\":{\"calls\":3,\"rounds\":2,\"bad_rows\":0,"
    "\"fallback_calls\":0,\"lmax\":0},\"apriori\":0.03,\"proven\":0.02,\"measured\":0.01}\n";

enum { REPORT_FILES = 6, RUN_FILE = REPORT_FILES };
typedef struct report_files {
    char dir[200], file[REPORT_FILES + 1][260], out[260];
    const char *list[REPORT_FILES];
} report_files;

static inline void put_file(char path[260], const char *dir, const char *name, const char *text)
{
    snprintf(path, 260, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, text, REPORT_HASH);
    assert_int_equal(fclose(f), 0);
}

static inline void make_files(report_files *r)
{
    test_mkdir(r->dir);
    snprintf(r->file[0], sizeof r->file[0], "%s/small.st.cert.json", r->dir);
    put_cert(r->file[0], NULL);
    put_file(r->file[1], r->dir, "probe.json", probe_text);
    put_file(r->file[2], r->dir, "repro.json", repro_text);
    put_file(r->file[3], r->dir, "log.csv", log_text);
    put_file(r->file[4], r->dir, "plan.json", plan_text);
    put_file(r->file[5], r->dir, "length.cert.json", length_text);
    put_file(r->file[RUN_FILE], r->dir, "small.st.run.json", run_text);
    snprintf(r->out, sizeof r->out, "%s/page.html", r->dir);
    for (size_t i = 0; i < REPORT_FILES; i++) r->list[i] = r->file[i];
}
#endif
