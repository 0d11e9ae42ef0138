// The output `weir` of k6: writes each request as five numbers into a file or named pipe. k6's own outputs write some
// ten lines of text per request.

package main

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/lib/netext/httpext"
	"go.k6.io/k6/metrics"
	"go.k6.io/k6/output"
)

const flushPeriod = 50 * time.Millisecond

// The tags of a request that weir reads.
var tagNames = []string{"method", "name", "url", "status", "expected_response", "error", "error_code"}

func init() {
	output.RegisterExtension("weir", func(params output.Params) (output.Output, error) {
		return &weirOutput{path: params.ConfigArgument, logger: params.Logger, outcomes: map[outcome]int64{}}, nil
	})
}

// The facts that many requests share. Equal sets of tags have the same address.
type outcome struct {
	metric string
	tags   *metrics.TagSet
}

type weirOutput struct {
	output.SampleBuffer
	path     string
	file     *os.File
	flusher  *output.PeriodicFlusher
	outcomes map[outcome]int64
	news     news
	rows     []byte
	logger   logrus.FieldLogger
}

// The JSON before the rows.
type news struct {
	// New outcomes: the metric, then the value of each tag.
	Outcomes [][]string `json:"outcomes"`
	Users    float64    `json:"users"`
	Unsent   float64    `json:"unsent"`
}

func (o *weirOutput) Description() string { return "weir" }

func (o *weirOutput) Start() (err error) {
	if o.file, err = os.OpenFile(o.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
		return err
	}
	o.flusher, err = output.NewPeriodicFlusher(flushPeriod, o.flush)
	return err
}

func (o *weirOutput) Stop() error {
	o.flusher.Stop()
	return o.file.Close()
}

func (o *weirOutput) flush() {
	for _, container := range o.GetBufferedSamples() {
		// A trail has all samples of a request of HTTP. Its one duration is cheaper than its list of samples.
		if trail, ok := container.(*httpext.Trail); ok {
			o.add("http_req_duration", trail.Tags, trail.EndTime, metrics.D(trail.Duration))
			continue
		}
		for _, sample := range container.GetSamples() {
			switch name := sample.Metric.Name; name {
			case "http_req_duration", "grpc_req_duration":
				o.add(name, sample.Tags, sample.Time, sample.Value)
			case "vus", "vus_max":
				o.news.Users = math.Max(o.news.Users, sample.Value)
			case "dropped_iterations":
				o.news.Unsent += sample.Value
			}
		}
	}
	if err := o.write(); err != nil {
		o.logger.WithError(err).Warn("weir's output: cannot write the requests")
	}
}

// Adds a row: the time of the end in ns, the number of the outcome, the response time in ms, two fields without a value.
func (o *weirOutput) add(metric string, tags *metrics.TagSet, end time.Time, durationMs float64) {
	key := outcome{metric, tags}
	number, known := o.outcomes[key]
	if !known {
		number = int64(len(o.outcomes))
		o.outcomes[key] = number
		values := []string{metric}
		for _, name := range tagNames {
			value, _ := tags.Get(name)
			values = append(values, value)
		}
		o.news.Outcomes = append(o.news.Outcomes, values)
	}
	for _, value := range [5]uint64{uint64(end.UnixNano()), uint64(number), math.Float64bits(durationMs), 0, 0} {
		o.rows = binary.NativeEndian.AppendUint64(o.rows, value)
	}
}

// Writes the sizes of the two parts, the JSON and the rows.
func (o *weirOutput) write() error {
	text, err := json.Marshal(o.news)
	if err != nil {
		return err
	}
	report := binary.NativeEndian.AppendUint32(nil, uint32(len(text)))
	report = binary.NativeEndian.AppendUint32(report, uint32(len(o.rows)))
	report = append(append(report, text...), o.rows...)
	o.news.Outcomes, o.rows = nil, o.rows[:0]
	_, err = o.file.Write(report)
	return err
}
