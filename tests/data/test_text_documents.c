/* Tests src/data/text_documents.c: which documents are in a file, by hand. */
#include "data/text_documents.h"
#include <pare_test.h>

typedef struct text_case {
    pare_document_opts o;
    const char *text;
    const char *says;    /* of a file that is refused; NULL: it is read */
    const char *want[6]; /* "LINE TEXT", or with labels "LINE LABEL TEXT" */
} text_case;

#define TXT   PARE_FORMAT_TXT
#define CSV   PARE_FORMAT_CSV
#define TSV   PARE_FORMAT_TSV
#define JSONL PARE_FORMAT_JSONL

/* The bytes are copied to the end of a block of their own: valgrind and the sanitizers see a read
 * beyond them. */
static void check(const text_case *c)
{
    const size_t bytes = strlen(c->text);
    pare_arena *const a = pare_arena_new();
    char *const text = malloc(bytes ? bytes : 1);
    pare_documents d;
    pare_err err = {0};
    assert_true(a && text);
    memcpy(text, c->text, bytes);
    const pare_status st = pare_documents_read(&d, a, text, bytes, &c->o, &err);
    if (c->says) {
        assert_status(st, PARE_ERR_INPUT, &err);
        assert_contains(err.msg, c->says);
    } else {
        assert_ok(st, &err);
        size_t n = 0;
        for (; n < 6 && c->want[n]; n++) {
            char have[200];
            assert_true(n < d.n);
            const pare_document *const x = &d.list[n];
            if (d.labels)
                snprintf(have, sizeof have, "%zu %lld %.*s", x->line, (long long)x->label,
                         (int)x->bytes, x->text);
            else
                snprintf(have, sizeof have, "%zu %.*s", x->line, (int)x->bytes, x->text);
            assert_string_equal(have, c->want[n]);
            assert_true(d.labels || x->label == -1);
        }
        assert_int_equal(d.n, n);
    }
    free(text);
    pare_arena_free(a);
}

#define CHECK_ALL(list)                                                                            \
    for (size_t i = 0; i < sizeof(list) / sizeof *(list); i++) check(&(list)[i])

static void texts_are_separated_by_marks_or_blank_lines_or_not_at_all(void **state)
{
    (void)state;
    static const text_case cases[] = {
        {{.format = TXT}, "", NULL, {0}},
        {{.format = TXT}, " one\ntext\n", NULL, {"1  one\ntext\n"}}, /* as it stands */
        {{.format = TXT}, "\n\n a\nb \n\n\n", NULL, {"1 \n\n a\nb \n\n\n"}},
        {{.format = TXT}, "\n\na\nb\n\n \t\nc\r\n\r\nd", NULL, {"3 a\nb", "7 c", "9 d"}},
        {{.format = TXT},
         "a\n\nb\n<|endoftext|>\n\n c\n<|endoftext|>\r\n<|endoftext|>",
         NULL,
         {"1 a\n\nb", "6 c"}},
        {{.format = TXT},
         "a <|endoftext|>\n\n<|endoftext|> b",
         NULL,
         {"1 a <|endoftext|>", "3 <|endoftext|> b"}},
        {{.format = TXT, .whole = true}, "a\n\nb\n<|endoftext|>\nc", NULL, {"1 a\n\nb", "5 c"}},
        {{.format = TXT, .whole = true, .not_marked = true},
         "a\n\nb\n<|endoftext|>\nc",
         NULL,
         {"1 a\n\nb\n<|endoftext|>\nc"}},
        {{.format = TXT, .lines = true}, "a\n\n b \r\nc", NULL, {"1 a", "3 b", "4 c"}},
        {{.format = TXT, .lines = true}, "a\nb\n<|endoftext|>\nc\n", NULL, {"1 a\nb", "4 c"}},
    };
    CHECK_ALL(cases);
}

static void rows_of_csv_are_those_of_rfc_4180(void **state)
{
    (void)state;
    static const text_case cases[] = {
        {{.format = CSV}, "", NULL, {0}},
        {{.format = CSV}, "text\n", NULL, {0}},
        {{.format = CSV}, "one\ntwo\n", NULL, {"1 one", "2 two"}},
        {{.format = CSV},
         "id,text\r\n1,\"a, b\"\r\n2,\"say \"\"hi\"\"\"\r\n",
         NULL,
         {"2 a, b", "3 say \"hi\""}},
        {{.format = CSV},
         "text,id\n\"a\n\nb\",1\n\"\",2\n,3\nend,4",
         NULL,
         {"2 a\n\nb", "5 ", "6 ", "7 end"}},
        {{.format = CSV}, "\"text\",\"label\"\nx,1\n\"y\",02\n", NULL, {"2 1 x", "3 2 y"}},
        {{.format = CSV}, "\"\"\"\"\n", NULL, {"1 \""}},
        {{.format = CSV}, "text,n\nab,\"1\"", NULL, {"2 ab"}},
        {{.format = CSV}, "text,n\nab,", NULL, {"2 ab"}},
        {{.format = CSV}, "text\na\rb\n", NULL, {"2 a\rb"}},
        {{.format = CSV}, "id,text\n1,\"open\n2,x\n", "line 2: a quote is not closed", {0}},
        {{.format = CSV}, "text,id\na\nb,1\n", "line 2: 1 field; the first row has 2", {0}},
        {{.format = CSV}, "text,id\na,1,2\n", "line 2: 3 fields; the first row has 2", {0}},
        {{.format = CSV}, "text\n\"a\"b\n", "line 2: text behind a closing quote", {0}},
        {{.format = CSV}, "text\n\"a\nb\" c\n", "line 3: text behind a closing quote", {0}},
        {{.format = CSV}, "text\n5\" disk\n", "line 2: a quote in a field", {0}},
        {{.format = CSV}, "text,label\na,1\nb,x\n", "line 3: the label is not a number", {0}},
        {{.format = CSV}, "text,label\na,-1\n", "line 2: the label", {0}},
        {{.format = CSV}, "text,label\na,99999999999999999999\n", "line 2: the label", {0}},
        {{.format = TSV}, "text\tn\n\"a\tb\n", NULL, {"2 \"a"}}, /* nothing is quoted */
        {{.format = TSV}, "sentence\tlabel\na\t1\r\nb\t0\n\n", NULL, {"2 1 a", "3 0 b"}},
    };
    CHECK_ALL(cases);
}

static void the_column_is_the_one_that_is_meant(void **state)
{
    (void)state;
    static const text_case cases[] = {
        {{.format = CSV}, "sentence,text\na,b\n", NULL, {"2 b"}},
        {{.format = CSV}, "review,label\na,1\n", NULL, {"2 1 a"}},
        {{.format = CSV}, "label,review\n1,a\n", NULL, {"2 1 a"}},
        {{.format = CSV},
         "a,b\n",
         "which column is the text? The first row has: 1 \"a\", 2 \"b\"; name",
         {0}},
        {{.format = CSV, .column = "b"}, "a,b\n1,2\n", NULL, {"2 2"}},
        {{.format = CSV, .column = "2"}, "a,b\n1,2\n", NULL, {"1 b", "2 2"}}, /* no row of names */
        {{.format = CSV, .column = "1"}, "id,text\n1,2\n", NULL, {"2 1"}},    /* `text` is a name */
        {{.format = CSV, .column = "3"},
         "id,text\n1,2\n",
         "there is no such column: 1 \"id\", 2 \"text\"",
         {0}},
        {{.format = CSV, .column = "0"}, "id,text\n1,2\n", "no column has that name", {0}},
        {{.format = CSV, .column = "Text"},
         "id,text\n1,2\n",
         "no column has that name: 1 \"id\"",
         {0}},
        {{.format = CSV, .column = "label"}, "label,text\n1,2\n", NULL, {"2 1"}},
        {{.format = CSV},
         "a\x01"
         "b,"
         "\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4"
         "\xC3\xA4\xC3\xA4,c\n",
         "1 \"a b\", 2 "
         "\"\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3"
         "\xA4\xC3\xA4...\", 3 \"c\"",
         {0}},
        {{.format = CSV}, "1,2,3,4,5,6,7,8,9,10,11,12,13\n", "12 \"12\", ...; name", {0}},
    };
    CHECK_ALL(cases);
}

static void lines_of_json_are_objects_with_a_string(void **state)
{
    (void)state;
    static const text_case cases[] = {
        {{.format = JSONL}, "", NULL, {0}},
        {{.format = JSONL},
         "{\"text\": \"a\\nb \\u00e4\", \"n\": 1}\r\n\n{\"text\": \"\"}",
         NULL,
         {"1 a\nb \xC3\xA4", "3 "}},
        {{.format = JSONL},
         "{\"n\": 1, \"body\": \"x\"}\n{\"body\": \"y\"}\n",
         NULL,
         {"1 x", "2 y"}},
        {{.format = JSONL, .column = "b"}, "{\"a\": \"1\", \"b\": \"2\"}\n", NULL, {"1 2"}},
        {{.format = JSONL},
         "{\"sentence\": \"x\", \"label\": 3}\n{\"label\": 0, \"sentence\": \"y\"}\n",
         NULL,
         {"1 3 x", "2 0 y"}},
        {{.format = JSONL},
         "{\"a\": \"1\", \"b\": \"2\"}\n",
         "which string is the text? The first object has: 1 \"a\", 2 \"b\"",
         {0}},
        {{.format = JSONL, .column = "n"},
         "{\"a\": \"1\", \"n\": 2}\n",
         "no string of the first object has that name: 1 \"a\"",
         {0}},
        {{.format = JSONL}, "{\"n\": 1}\n", "the first object has no string", {0}},
        {{.format = JSONL}, "\n[1]\n", "line 2: not an object", {0}},
        {{.format = JSONL}, "{\"text\": \"a\"}\n{\"text\": 1}\n", "line 2", {0}},
        {{.format = JSONL}, "{\"text\": \"a\"}\n{\"other\": \"b\"}\n", "line 2", {0}},
        {{.format = JSONL}, "{\"text\": \"a\"}\n{\"text\": \"b\n\"}\n", "line 2, column", {0}},
        {{.format = JSONL}, "{\"text\": \"a\\u0000b\"}\n", "line 1, column", {0}},
        {{.format = JSONL}, "{\"text\": \"a\", \"label\": 1}\n{\"text\": \"a\"}\n", "line 2", {0}},
        {{.format = JSONL}, "{\"text\": \"a\", \"label\": 1.5}\n", "line 1", {0}},
        {{.format = JSONL}, "{\"text\": \"a\", \"label\": -1}\n", "line 1", {0}},
    };
    CHECK_ALL(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_separated_by_marks_or_blank_lines_or_not_at_all),
        cmocka_unit_test(rows_of_csv_are_those_of_rfc_4180),
        cmocka_unit_test(the_column_is_the_one_that_is_meant),
        cmocka_unit_test(lines_of_json_are_objects_with_a_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
