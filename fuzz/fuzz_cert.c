/* Certificates: what is read is written to a text that reads to the same text. */
#include "fuzz.h"
#include "cert/prove.h"

#include <string.h>

static void print(char **text, size_t *n, pare_arena *a, const pare_cert *c)
{
    cJSON *tree = NULL;
    pare_err err = {0};
    FUZZ_EXPECT(pare_cert_json(&tree, c, &err) == PARE_OK);
    FUZZ_EXPECT(pare_json_print(text, n, a, tree, 0, &err) == PARE_OK);
    cJSON_Delete(tree);
}

static void round_trip(pare_arena *a, const pare_cert *c)
{
    char *text = NULL, *again = NULL;
    size_t n = 0, m = 0;
    pare_cert *twin = NULL;
    pare_err err = {0};
    print(&text, &n, a, c);
    fuzz_no_files();
    fuzz_file("c.json", (const uint8_t *)text, n);
    FUZZ_EXPECT(pare_cert_read(&twin, a, "c.json", &err) == PARE_OK);
    print(&again, &m, a, twin);
    FUZZ_EXPECT(n == m && memcmp(text, again, n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pare_arena *const a = pare_arena_new();
    pare_cert *c = NULL;
    pare_err err = {0};
    FUZZ_EXPECT(a);
    fuzz_file("c.json", data, size);
    const pare_status st = pare_cert_read(&c, a, "c.json", &err);
    fuzz_expect_said(st, &err);
    if (!st) round_trip(a, c);
    fuzz_no_files();
    pare_arena_free(a);
    return 0;
}
