{{range .items}}{{.metadata.name}} {{.kind}}{{"\n"}}{{end}}
