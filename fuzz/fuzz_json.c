/* JSON: what is accepted is printed, read again and printed to the same bytes. */
#include "fuzz.h"
#include "base/json.h"

#include <string.h>

static void round_trip(pare_arena *a, const cJSON *tree, int indent)
{
    char *text = NULL, *again = NULL;
    size_t n = 0, m = 0;
    cJSON *twin = NULL;
    pare_err err = {0};
    FUZZ_EXPECT(pare_json_print(&text, &n, a, tree, indent, &err) == PARE_OK);
    FUZZ_EXPECT(pare_json_parse(&twin, text, n, &err) == PARE_OK);
    FUZZ_EXPECT(pare_json_print(&again, &m, a, twin, indent, &err) == PARE_OK);
    FUZZ_EXPECT(n == m && memcmp(text, again, n) == 0);
    cJSON_Delete(twin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pare_arena *const a = pare_arena_new();
    cJSON *tree = NULL;
    pare_err err = {0};
    FUZZ_EXPECT(a);
    const pare_status st = pare_json_parse(&tree, (const char *)data, size, &err);
    fuzz_expect_said(st, &err);
    FUZZ_EXPECT((st == PARE_OK) == (tree != NULL));
    if (tree) {
        round_trip(a, tree, 0);
        round_trip(a, tree, 2);
    }
    cJSON_Delete(tree);
    pare_arena_free(a);
    return 0;
}
