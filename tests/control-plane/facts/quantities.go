package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// quantities writes what the real type makes of many texts: the text, then its canonical form, its value and its
// thousandths (both rounded up), or the error; separated by tabs. The texts are all combinations of a few numbers and
// suffixes, oddities, and random ones from a fixed seed.
func quantities() []byte {
	numbers := []string{
		"0", "1", "8", "10", "100", "1000", "1024", "1025", "12345678", "0.5", "1.5", "1.500", "0.001", "0.0000000001",
		"100000000000000000000", "9223372036854775807", "9223372036854775808", "123456789012345678901.25", "007", "00.70",
		"1.", ".5", "-1", "-1.5", "-0.1", "+3", "-0", "999999999999999999", "1234567890123456789",
	}
	suffixes := []string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E2", "e-2", "e+6", "e-12"}
	odd := []string{
		"", " ", ".", "+", "-", "m", "Ki", "1 ", " 1", "1K", "1ki", "1mi", "1e", "1E", "1e3m", "1.2.3", "1,5", "0x10", "1_0", "--1",
		"+-1", "1Mii", "1Kim", "1e1.5", "1e400", "1e-400", "one", "1 Ki", "1E+", "i", "1i", "e3", "5%", "٣", "1e99999999999999999999",
	}
	var texts []string
	for _, number := range numbers {
		for _, suffix := range suffixes {
			texts = append(texts, number+suffix)
		}
	}
	texts = append(texts, odd...)
	random := rand.New(rand.NewSource(35))
	for range 300 {
		number := fmt.Sprint(random.Int63n(1 << uint(1+random.Intn(60))))
		if random.Intn(2) == 0 {
			number += "." + fmt.Sprint(random.Int63n(1<<uint(1+random.Intn(40))))
		}
		texts = append(texts, number+suffixes[random.Intn(len(suffixes))])
	}

	var out bytes.Buffer
	for _, text := range texts {
		q, err := resource.ParseQuantity(strings.TrimSpace(text))
		if err != nil {
			fmt.Fprintf(&out, "%s\t%s\n", text, err)
			continue
		}
		rounded := q.DeepCopy()
		rounded.RoundUp(resource.Milli)
		fmt.Fprintf(&out, "%s\t%s\t%d\t%d\t%s\n", text, q.String(), q.Value(), q.MilliValue(), rounded.String())
	}
	return out.Bytes()
}
